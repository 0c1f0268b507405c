"""Run sessions as plain processes of this node, shut off from one another.

No container engine is needed. A session is a process tree in a bubblewrap sandbox
with limits by control groups, as far as this node lets us; ``open`` finds out how
far that is. All that is known of a session lies in its own folder, and its
processes belong to nobody: the agent may end and come back at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import weakref
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from traitlets import Bool, Dict, Enum, Integer, List, Unicode
from traitlets.config import Configurable

from backendai_agent.crashpoints import crashpoint
from backendai_agent.folders import container_folder
from backendai_agent.jobs import find_main_program
from backendai_agent.measuring.groups import GroupReader, Root
from backendai_agent.measuring.readings import Reading
from backendai_agent.runtimes.base import (
    STAMP_SECONDS,
    ContainerPatch,
    Endpoint,
    LogNews,
    Observed,
    Progress,
    Resident,
    RuntimeFailure,
    ShownFolder,
)
from backendai_agent.runtimes.process_environment import Environment
from backendai_agent.runtimes.process_limits import Bounds, Limits
from backendai_agent.runtimes.process_memory import ProcessMemory, StartRecord
from backendai_agent.runtimes.process_node import (
    Node,
    NodeWishes,
    look_again,
    look_at_node,
    nameservers,
)
from backendai_agent.runtimes.process_packages import (
    choose_room,
    own_python,
    room_environ,
)
from backendai_agent.runtimes.process_preparation import (
    Choice,
    UserRange,
    check_can_be,
    check_nothing_hidden,
    check_patch,
    chosen_nodes,
    clear,
    driver_variables,
    find_containers,
    hand_over,
    own_home,
    own_run,
    prepare,
    sweep,
)
from backendai_agent.runtimes.process_sandbox import (
    announce,
    base_environ,
    build_command,
    leave_root,
)
from backendai_agent.runtimes.process_supervisor import (
    MARK,
    Watcher,
    ask_to_end,
    end_all,
    launch,
)
from backendai_agent.runtimes.process_tending import Tended, connect, tend
from backendai_agent.runtimes.process_tiers import NONE, find_shell
from backendai_agent.runtimes.process_view import is_running, look_at_log, observe_all
from backendai_hub.api.agents import ContainerSpec, RegistryCredential
from backendai_hub.core.agents import Isolation
from backendai_hub.core.ids import is_id

Containers = list[tuple[ProcessMemory, StartRecord]]
Words = list[str]
_START_SECONDS: Final = 30.0
_END_SECONDS: Final = 20.0
_HELPER_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.002
_LOG_SECONDS: Final = 0.2
"""How often to look whether a log that somebody waits for has been written to."""


class ProcessRuntime(Configurable):
    """Sessions as processes of this node, without a container engine."""

    name = "process"

    data_dir = Unicode(
        help="The agent's folder; sessions live in its folder containers/."
    ).tag(config=True)
    environment = Unicode(
        sys.prefix,
        help="""Prefix of the Python environment that sessions run in, known to users
        as the image "jupyterlab". It is shown to sessions read-only.""",
    ).tag(config=True)
    environments = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        help="Further prepared environments: name of the image to prefix on this node.",
    ).tag(config=True)
    command = List(
        Unicode(),
        ["{python}", "-m", "backendai_lab.boot"],
        help="""The main program of a session. {python} stands for the environment's
        interpreter.""",
    ).tag(config=True)
    isolation = Enum(
        ["auto", "namespaces", "none"],
        "auto",
        help="""How sessions are shut off. "auto" takes namespaces where they really
        work and else none; "namespaces" refuses to serve without them; "none" serves
        a single user.""",
    ).tag(config=True)
    open_folder = Unicode(
        "/var/lib/backendai-sessions",
        help="""Where sessions keep their files when the agent is root and there is no
        isolation. Everybody must be able to go there; each session's own folder is
        closed to the others.""",
    ).tag(config=True)
    limits = Enum(
        ["auto", "cgroup v1", "cgroup v2", "systemd-user", "watchdog"],
        "auto",
        help="""What keeps sessions within their processors and memory. "auto" takes
        the strictest that really works here.""",
    ).tag(config=True)
    network = Enum(
        ["auto", "none", "slirp", "host"],
        "auto",
        help="""What sessions reach. "slirp": the outside, through slirp4netns, but
        nothing on this node's loopback; "none": nothing; "host": this node's own
        network, with every service that listens on it; "auto": slirp where it works,
        else none.""",
    ).tag(config=True)
    allow_host_network = Bool(
        default_value=False,
        help="""Let sessions of resource groups with `use_host_network` be on this
        node's own network, with every service that listens on it.""",
    ).tag(config=True)
    bwrap = Unicode("bwrap", help="The bubblewrap program.").tag(config=True)
    slirp4netns = Unicode("slirp4netns", help="The slirp4netns program.").tag(
        config=True
    )
    first_uid = Integer(
        200000,
        help="""First of the host users that sessions run as when the agent is root,
        one for each. They need no entry in /etc/passwd and must own nothing.""",
    ).tag(config=True)
    uid_count = Integer(10000, help="How many such users there are.").tag(config=True)
    pids_limit = Integer(2048, help="Most processes and threads of a session.").tag(
        config=True
    )
    tmp_bytes = Integer(
        2 << 30, help="Size of a session's /tmp; what is in it counts as its memory."
    ).tag(config=True)
    log_bytes = Integer(
        10 << 20, help="Length at which a session's log is cut to its last part."
    ).tag(config=True)
    cgroup_prefix = Unicode(
        "backendai", help="Folder of our control groups, in each hierarchy."
    ).tag(config=True)
    visible = List(
        Unicode(),
        help="Further folders of this node that sessions see, read-only.",
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._node: Node | None = None
        self._looking = asyncio.Lock()
        self._watcher = Watcher()
        self._groups = GroupReader()
        self._users = UserRange(self.first_uid, self.uid_count)
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )
        self._tending: asyncio.Task[None] | None = None

    # -- the node ----------------------------------------------------------------

    async def open(self) -> Isolation:
        """Find out what this node can do, and take over what runs here already."""
        if not self.data_dir:
            raise RuntimeFailure("ProcessRuntime.data_dir is not set")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._node = await asyncio.to_thread(look_at_node, self._wishes())
        except OSError as error:
            raise RuntimeFailure(f"this node cannot be used: {error}") from error
        await asyncio.to_thread(sweep, self._folder)
        for memory, _ in await asyncio.to_thread(self._all):
            pid = memory.supervisor()
            if pid is not None:
                self._watcher.watch(memory.container.path.name, pid, lock=memory.lock)
        self._tending = asyncio.create_task(tend(self._tended(), self._watcher))
        return self._node.isolation

    def _wishes(self) -> NodeWishes:
        return NodeWishes(
            folder=self._folder,
            environments={"jupyterlab": self.environment, **self.environments},
            module=self._needed_module(),
            isolation=self.isolation,
            limits=self.limits,
            network=self.network,
            bwrap=self.bwrap,
            slirp=self.slirp4netns,
            uid=self.first_uid + self.uid_count - 1,
            cgroup_prefix=self.cgroup_prefix,
            open_folder=Path(self.open_folder).absolute(),
        )

    def _tended(self) -> Tended:
        return Tended(
            folder=self._folder,
            limits=self._limits,
            slirp=self._here.slirp,
            log_bytes=self.log_bytes,
        )

    def _needed_module(self) -> str:
        words = list(self.command)
        return words[words.index("-m") + 1] if "-m" in words[:-1] else ""

    async def close(self) -> None:
        """Let go of descriptors and tasks. Sessions go on."""
        if self._tending is not None:
            self._tending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._tending
            self._tending = None
        self._watcher.close()

    @property
    def _folder(self) -> Path:
        return Path(self.data_dir).absolute() / "containers"

    @property
    def _here(self) -> Node:
        if self._node is None:
            raise RuntimeFailure("the runtime is not open")
        return self._node

    @property
    def _limits(self) -> Limits:
        return self._here.limits

    def _all(self) -> Containers:
        return list(find_containers(self._folder))

    def _turn(self, container_id: str) -> asyncio.Lock:
        """One thing at a time is done to a container."""
        return self._turns.setdefault(container_id, asyncio.Lock())

    def _memory(self, container_id: str) -> ProcessMemory:
        if not is_id(container_id):
            raise RuntimeFailure(f"{container_id[:80]!r} is not a container id")
        folder = container_folder(Path(self.data_dir).absolute(), container_id)
        return ProcessMemory(folder)

    # -- environments ------------------------------------------------------------

    async def images(self) -> list[str]:
        """List the names of the prepared environments that work."""
        return sorted(self._here.environments)

    @property
    def isolation_now(self) -> Isolation:
        """What is kept apart; its notes follow what became of environments."""
        return self._here.isolation

    async def fetch(
        self,
        image: str,
        progress: Progress,
        credential: RegistryCredential | None = None,
    ) -> None:
        """Take up an environment that was prepared since the agent started.

        Preparing is the operator's: there is no registry to fetch one from.
        """
        wishes = self._wishes()
        async with self._looking:
            for name, prefix in wishes.environments.items():
                if image in {name, prefix} and name not in self._here.environments:
                    self._node = await asyncio.to_thread(
                        look_again, self._here, wishes, name
                    )
        self._environment(image)
        progress(1.0)

    async def discard(self, image: str) -> None:
        """Refuse to: what the operator has prepared is the operator's to remove."""
        if any(image in {e.name, e.prefix} for e in self._here.environments.values()):
            raise RuntimeFailure(
                f"the environment {image} was prepared by this node's operator, who"
                " alone can remove it: take it out of ProcessRuntime.environments"
            )

    def _environment(self, image: str) -> Environment:
        for environment in self._here.environments.values():
            if image in {environment.name, environment.prefix}:
                return environment
        refused = self._here.unusable.get(image)
        raise RuntimeFailure(
            refused
            or f"{image} is not among this node's prepared environments:"
            f" {', '.join(sorted(self._here.environments)) or 'there are none'}"
        )

    def run_inside(self, container_id: str) -> str:
        """Tell where a container finds its run folder, in its own eyes."""
        memory = self._memory(container_id)
        return own_run(memory, isolated=self._here.tier.isolated)

    # -- starting ----------------------------------------------------------------

    async def resident(self, spec: ContainerSpec) -> Resident:
        """Tell which user of the node the session is, or is going to be."""
        here = self._here
        uid, gid = os.geteuid(), os.getegid()
        if here.own_users:
            check_can_be(
                spec.identity, privileged=here.tier.privileged, users=self._users
            )
            uid = await asyncio.to_thread(self._choose_user, spec, None)
            given = spec.identity.gid if spec.identity else None
            gid = uid if given is None else given
        return Resident(uid, gid, way="bind" if here.tier.isolated else "link")

    def _choose_user(self, spec: ContainerSpec, containers: Containers | None) -> int:
        """Return the host user that the session is; always the same one."""
        if spec.identity is not None and spec.identity.uid is not None:
            return spec.identity.uid
        known = self._all() if containers is None else containers
        for _, record in known:
            if record.id != spec.id or record.uid is None:
                continue
            if record.uid in self._users:
                return record.uid  # of an earlier start, whose files are here
        used = [record.uid for _, record in known if record.uid is not None]
        return self._users.give(spec.id, used)

    async def start(self, spec: ContainerSpec, patch: ContainerPatch) -> None:
        """Start the session's main program, unless it runs already.

        The activation is expected in the run folder by now. It is given to the
        session's user here; one written later needs :meth:`hand_over`.
        """
        memory = self._memory(spec.id)
        async with self._turn(spec.id):
            if await asyncio.to_thread(is_running, memory):
                await self.hand_over(spec.id)
                await self._reach(memory)
                return
            if memory.has_ended() and not memory.container.activation.exists():
                return  # it had its life
            try:
                await self._start(memory, spec, patch)
            except OSError as error:
                raise RuntimeFailure(str(error)) from error

    async def _start(
        self, memory: ProcessMemory, spec: ContainerSpec, patch: ContainerPatch
    ) -> None:
        here = self._here
        choice = Choice(
            environment=self._environment(spec.image),
            tier=here.tier.name,
            network=self._network_of(spec),
            nameservers=self._nameservers_of(spec),
            seccomp=here.tier.seccomp,
        )
        check_can_be(spec.identity, privileged=here.tier.privileged, users=self._users)
        visible = check_patch(patch, self.visible)
        bounds = Bounds(spec.cpu, spec.memory, self.pids_limit)
        check_nothing_hidden(patch.folders, [*choice.environment.paths, *visible])
        folders = patch.folders
        record = await asyncio.to_thread(
            self._prepare, memory, spec, choice, bounds, folders
        )
        command = self._command(memory, spec, patch, record=record, visible=visible)
        crashpoint("agent.created")
        # No await between the two: a child that nobody watches is never collected.
        pid = launch(
            memory,
            [*self._limits.wrap(spec.id, bounds), *command],
            joins=self._limits.joins(spec.id),
        )
        self._watcher.watch(spec.id, pid, lock=memory.lock)
        await self._reach(memory)
        await asyncio.to_thread(memory.learn_init)
        connect(memory, record, self._here.slirp, self._watcher)

    def _network_of(self, spec: ContainerSpec) -> str:
        """Return the network that *spec* is on; raises RuntimeFailure if refused."""
        if not spec.host_network or self._here.network == "host":
            return self._here.network
        if not self.allow_host_network:
            raise RuntimeFailure(
                "the session's resource group asks for the node's own network, which"
                " this node's operator has not allowed: on it, nothing closes the"
                " node's services and the cloud's metadata to a session"
                " (ProcessRuntime.allow_host_network)"
            )
        return "host"

    def _nameservers_of(self, spec: ContainerSpec) -> tuple[str, ...]:
        here, network = self._here, self._network_of(spec)
        return here.nameservers if network == here.network else nameservers(network)

    def _prepare(
        self,
        memory: ProcessMemory,
        spec: ContainerSpec,
        choice: Choice,
        bounds: Bounds,
        folders: tuple[ShownFolder, ...],
    ) -> StartRecord:
        containers = self._all()
        if choice.tier == NONE:
            self._refuse_second_owner(spec, containers)
        if memory.read_record() is not None:  # an earlier start came only half way
            end_all(memory, spec.id, self._limits, patience=_END_SECONDS)
        uid = None
        if self._here.own_users:
            uid = self._choose_user(spec, containers)
        record = prepare(memory, spec, choice, uid=uid, folders=folders)
        self._limits.create(spec.id, bounds)
        return record

    def _refuse_second_owner(self, spec: ContainerSpec, containers: Containers) -> None:
        owners = {r.owner for _, r in containers if r.id != spec.id} - {spec.owner}
        if owners:
            raise RuntimeFailure(
                "this node cannot shut sessions off from one another and serves one"
                f" user at a time, now {', '.join(sorted(owners))}; install bubblewrap"
                " on it, or use a node with Docker"
            )

    def _command(
        self,
        memory: ProcessMemory,
        spec: ContainerSpec,
        patch: ContainerPatch,
        *,
        record: StartRecord,
        visible: list[str],
    ) -> list[str]:
        here, environment = self._here, self._environment(spec.image)
        isolated = here.tier.isolated
        home = own_home(memory, isolated=isolated)
        run = own_run(memory, isolated=isolated)
        program = find_main_program(self.command, spec, run)
        room = choose_room(patch.folders)
        python = own_python(home, room)
        argv = [word.replace("{python}", python) for word in program]
        environ = base_environ(
            environment.prefix, home=home, shell=find_shell(), room=room
        )
        environ |= room_environ(home, room)
        environ |= driver_variables(patch)
        bounds = Bounds(spec.cpu, spec.memory, self.pids_limit)
        inner = self._limits.inner(bounds)
        if here.tier.template is None:
            environ |= {
                "BACKENDAI_RUN_DIR": run,
                MARK: spec.id,
            }
            words = [f"{name}={value}" for name, value in environ.items()]
            clean = ["/usr/bin/env", "--ignore-environment", *words]
            return [*leave_root(record.uid), *clean, *inner, *announce(argv)]
        sandbox = replace(
            here.tier.template,
            uid=record.uid,
            gid=record.gid,
            gids=record.gids,
            work=memory.container.work,
            run=memory.container.run,
            etc=memory.etc,
            share_network=record.network == "host",
            hostname=spec.cluster.host,
            read_only=(*environment.paths, *visible),
            devices=chosen_nodes(patch),
            mounts=patch.mounts,
            folders=patch.folders,
            tmp_bytes=min(self.tmp_bytes, spec.memory or self.tmp_bytes),
            shm_bytes=spec.shmem,
            environ=environ,
        )
        built = build_command(sandbox, argv, inner=inner)
        memory.options.write_bytes(built.options)
        return list(built.words)

    async def _reach(self, memory: ProcessMemory) -> None:
        """Wait until the main program runs, or say why it does not."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not memory.has_started():
                    if not memory.is_supervised() and not memory.has_started():
                        said = memory.tail_log(3).strip()
                        raise RuntimeFailure(f"the sandbox was not made: {said}")
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise RuntimeFailure("the sandbox was not ready in time") from None

    async def hand_over(self, container_id: str) -> None:
        """Give the session's user an activation that was written just now."""
        memory = self._memory(container_id)
        record = await asyncio.to_thread(memory.read_record)
        if record is not None:
            await asyncio.to_thread(hand_over, memory, record)

    # -- stopping ----------------------------------------------------------------

    async def wind_down(self, container_id: str, grace: float) -> None:
        """Ask the container's main program to end, and wait so long for it."""
        if not is_id(container_id):
            raise RuntimeFailure(f"{container_id[:80]!r} is not a container id")
        async with self._turn(container_id):
            await self._wind_down(self._memory(container_id), container_id, grace)

    async def _wind_down(
        self, memory: ProcessMemory, container_id: str, grace: float
    ) -> None:
        isolated = self._was_isolated(memory)
        if await asyncio.to_thread(ask_to_end, memory, isolated=isolated):
            crashpoint("agent.stopping")
            await self._watcher.wait(container_id, grace)

    async def stop(self, container_id: str, grace: float) -> None:
        """End the container, however far it has come, and remove all of it."""
        if not is_id(container_id):
            raise RuntimeFailure(f"{container_id[:80]!r} is not a container id")
        memory = self._memory(container_id)
        async with self._turn(container_id):
            await self._wind_down(memory, container_id, grace)
            try:
                await asyncio.to_thread(self._remove, memory, container_id)
            except (RuntimeFailure, OSError) as error:
                why = f"{container_id} cannot be removed: {error}"
                raise RuntimeFailure(why) from error
        await self._watcher.wait(f"{container_id}/network", _HELPER_SECONDS)
        self._users.take_back(container_id)

    def _was_isolated(self, memory: ProcessMemory) -> bool:
        record = memory.read_record()
        return record.tier != NONE if record else self._here.tier.isolated

    def _remove(self, memory: ProcessMemory, container_id: str) -> None:
        end_all(memory, container_id, self._limits, patience=_END_SECONDS)
        self._limits.remove(container_id)
        clear(memory)

    # -- seeing ------------------------------------------------------------------

    def measure(self, specs: Sequence[ContainerSpec]) -> dict[str, Reading]:
        """Tell what containers use, each by its control group if it has one."""
        found = {}
        for spec in specs:
            memory = self._memory(spec.id)
            init = memory.sandbox_init()
            pid = init.pid if init else memory.supervisor()
            reading = None if pid is None else self._groups.read(Root(pid, spec.id))
            if reading is not None:
                found[spec.id] = reading
        return found

    async def list(self) -> list[Observed]:
        """List what is here: started by us, ended or not, and strange groups."""
        return await asyncio.to_thread(observe_all, self._folder, self._limits)

    async def endpoint(self, container_id: str, app: str) -> Endpoint | None:
        """Tell where JupyterLab of a running container listens."""
        if app != "lab" or not is_id(container_id):
            return None
        memory = self._memory(container_id)
        if not is_running(memory):
            return None
        return Endpoint(socket=memory.container.lab_socket)

    async def changes(self) -> AsyncIterator[str]:
        """Yield a container's id when it ends, or its network does."""
        while True:
            name = await self._watcher.changes.get()
            yield name.partition("/")[0]

    async def logs(self, container_id: str, tail: int) -> str:
        """Return the last *tail* lines the container printed."""
        return await asyncio.to_thread(self._memory(container_id).tail_log, tail)

    async def hear_log(self, container_id: str, age: float) -> LogNews:
        """Wait until the container has printed something."""
        memory = self._memory(container_id)
        since = time.time() - age - STAMP_SECONDS
        while True:
            news = await asyncio.to_thread(look_at_log, memory, since)
            if news is not None:
                return news
            await asyncio.sleep(_LOG_SECONDS)
