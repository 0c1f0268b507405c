"""Sessions in containers of Docker, or of anything that speaks Docker's API.

What a container is to us stands in its labels, so an agent that restarts finds its
containers again. An ended container is kept, with its exit code and its output,
until it is told to go.
"""

from __future__ import annotations

import asyncio
import math
import os
import resource
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import docker
from traitlets import Bool, Dict, Float, List, Unicode, default
from traitlets.config import LoggingConfigurable

from backendai_agent.crashpoints import crashpoint
from backendai_agent.folders import ContainerFolder, container_folder
from backendai_agent.measuring.readings import Reading
from backendai_agent.runtimes.base import (
    ContainerPatch,
    Endpoint,
    LogNews,
    Observed,
    Progress,
    Resident,
    RuntimeFailure,
)
from backendai_agent.runtimes.docker_addresses import Addresses
from backendai_agent.runtimes.docker_clusters import SessionNetworks
from backendai_agent.runtimes.docker_config import (
    HOST_NETWORK,
    LABEL_AGENT,
    LABEL_CONTAINER,
    LABEL_SESSION,
    NAME_PREFIX,
    PORT,
    SESSION_NETWORK,
    Surface,
    choose_profile,
    container_config,
    container_name,
    has_own_network,
)
from backendai_agent.runtimes.docker_engine import (
    EVERYTHING,
    Bell,
    ClashError,
    Engine,
    NotThereError,
)
from backendai_agent.runtimes.docker_facts import (
    explain_end,
    fence,
    judge,
    share_network,
    user_offset,
)
from backendai_agent.runtimes.docker_folders import (
    blame_view,
    empty_folders,
    hand_over,
)
from backendai_agent.runtimes.docker_images import Pull, discard, references
from backendai_agent.runtimes.docker_logs import hear_log, read_log
from backendai_agent.runtimes.docker_measures import DockerMeasures
from backendai_agent.runtimes.docker_network import (
    check_can_share_network,
    ensure_network,
    set_firewall,
)
from backendai_agent.runtimes.docker_people import name_person
from backendai_agent.runtimes.places import make_places
from backendai_hub.api.agents import ContainerSpec, RegistryCredential
from backendai_hub.core.agents import Isolation
from backendai_hub.core.references import shorten

READINGS: Final = 4
"""How often an address is read while its container keeps changing."""


class DockerRuntime(LoggingConfigurable):
    """Runs every session in a container of its own."""

    name = "docker"
    listen: ClassVar[str] = f"tcp:0.0.0.0:{PORT}"
    """Where JupyterLab listens inside; nothing is published on the node."""

    isolation_now: Isolation
    """What is kept apart at the moment; the firewall's part may change."""

    data_dir = Unicode(help="The agent's folder; containers' folders lie in it.")
    agent_id = Unicode(
        help="Whose containers these are; read from `agent.id` in the data folder"
        " when empty.",
    )

    url = Unicode(
        config=True,
        help="Where the container engine answers. Default: `DOCKER_HOST`, or else"
        " Docker's usual socket.",
    )

    network = Unicode(
        "backendai",
        config=True,
        help="The network that sessions share without seeing each other; made when"
        " it is missing.",
    )

    subnet = Unicode(
        "10.213.0.0/16",
        config=True,
        help="Addresses of the sessions' network on this node, when it is made.",
    )

    cluster_subnets = Unicode(
        "10.215.0.0/16",
        config=True,
        help="Where the addresses come from of the networks that sessions of several"
        " containers get for themselves.",
    )

    network_seconds = Float(
        30.0,
        min=0,
        config=True,
        help="How often networks are looked for that sessions have left behind.",
    )

    blocked_networks = List(
        Unicode(),
        ["169.254.0.0/16"],
        config=True,
        help="Networks that sessions may not reach: by default the link-local one,"
        " where clouds answer questions about the node. The containers of one session"
        " reach each other even if `cluster_subnets` is in one of them.",
    )

    firewall = Bool(
        default_value=True,
        config=True,
        help="Refuse connections from sessions to the node and to"
        " `blocked_networks`, with iptables.",
    )

    firewall_seconds = Float(
        10.0,
        min=0,
        config=True,
        help="How often it is seen to that the rules are still there.",
    )

    allow_reaching_host = Bool(
        default_value=False,
        config=True,
        help="Let several users share the node even if the rules cannot be set,"
        " so that sessions can reach the node's own services.",
    )

    allow_host_network = Bool(
        default_value=False,
        config=True,
        help="Let sessions of resource groups with `use_host_network` be on this"
        " node's own network. Nothing then closes the node's services, the addresses"
        " of `blocked_networks` and the ports of other sessions to them.",
    )

    command = List(
        Unicode(),
        ["/opt/backendai/bin/python", "-I", "-m", "backendai_lab.boot"],
        config=True,
        help="What every image starts: a Python that has backendai_lab, run apart"
        " from anything in the user's folder.",
    )

    environ = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        config=True,
        help="More environment variables for all containers. They can be read by"
        " anybody who may use the engine: no secrets here.",
    )

    @default("url")
    def _default_url(self) -> str:
        return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"

    # -- opening and closing -----------------------------------------------------

    async def open(self) -> Isolation:
        """Reach the engine, make the network, fence it, and begin to listen."""
        self._engine = Engine(self.url, self.log)
        self._bell = Bell()
        self._addresses = Addresses()
        self._networks = SessionNetworks(self.cluster_subnets, self.log)
        self._swept_at = -math.inf
        self._clearing: dict[str, str] = {}
        self._measures = DockerMeasures(self._engine)
        try:
            info = await self._engine.ask(lambda api: api.info())
            version = await self._engine.ask(lambda api: api.version())
            await self._engine.ask(
                lambda api: ensure_network(api, self.network, self.subnet)
            )
        except BaseException:
            await self._engine.close()
            raise
        self._facts = info
        self._judged = judge(info, version)
        self._breach = ""
        await self._fence()
        self._engine.follow({"type": ["container"]}, self._heard)
        return self.isolation_now

    async def _fence(self) -> None:
        """Set the rules that are missing; ``isolation_now`` tells what came of it."""
        self._fenced_at = asyncio.get_running_loop().time()
        breach = ""
        if self.firewall:
            try:
                await asyncio.to_thread(
                    set_firewall, self.blocked_networks, self.cluster_subnets
                )
            except RuntimeFailure as error:
                breach = str(error)
        if breach and breach != self._breach:
            self.log.error(
                "SESSIONS CAN REACH THIS NODE'S OWN SERVICES: the firewall cannot be"
                " set (%s)%s",
                breach,
                "" if self.allow_reaching_host else "; only one user may be here now",
            )
        elif self._breach and not breach:
            self.log.info("sessions cannot reach this node's own services any more")
        self._breach = breach
        self.isolation_now = fence(
            self._judged,
            breach=breach,
            left_to_site=not self.firewall,
            tolerated=self.allow_reaching_host,
        )
        if self.allow_host_network:
            self.isolation_now = share_network(self.isolation_now)

    async def _fence_again(self) -> None:
        """Put back what somebody removed: reloading a firewall empties its chains."""
        now = asyncio.get_running_loop().time()
        if now - self._fenced_at >= self.firewall_seconds:
            await self._fence()

    async def _sweep_again(self) -> None:
        """Remove networks whose sessions are gone."""
        now, owner = asyncio.get_running_loop().time(), self._owner()
        if not owner or now - self._swept_at < self.network_seconds:
            return
        self._swept_at = now
        await self._engine.ask(lambda api: self._networks.sweep(api, owner))

    async def close(self) -> None:
        """Let go of the engine; containers keep running."""
        await self._engine.close()

    def _heard(self, name: str) -> None:
        """Pass on what the engine's events say (on their thread)."""
        if name == EVERYTHING:
            self._addresses.forget_all()
            self._bell.ring(EVERYTHING)
        elif name.startswith(NAME_PREFIX):
            container_id = name.removeprefix(NAME_PREFIX)
            self._addresses.forget(container_id)
            self._measures.forget(container_id)
            self._bell.ring(container_id)

    def changes(self) -> AsyncIterator[str]:
        """Yield ids of containers that changed; an empty one means any may have."""
        return self._bell.listen()

    def _owner(self) -> str:
        """Return our agent's id, which is unknown until the agent is enrolled."""
        if not self.agent_id:
            path = Path(self.data_dir) / "agent.id"
            if path.is_file():
                self.agent_id = path.read_text().strip()
        return self.agent_id

    # -- images ------------------------------------------------------------------

    async def images(self) -> list[str]:
        """List every name and digest that the engine has an image for."""
        listed = await self._engine.ask(lambda api: api.images())
        return references(listed)

    shorten = staticmethod(shorten)
    """How the engine spells the references it lists."""

    async def fetch(
        self,
        image: str,
        progress: Progress,
        credential: RegistryCredential | None = None,
    ) -> None:
        """Pull *image*; giving up waiting ends the pull."""
        pull = Pull(image, progress, credential)
        try:
            await self._engine.ask_at_length(pull.run)
        finally:
            pull.stop()

    async def discard(self, image: str) -> None:
        """Remove *image*; the engine keeps layers that others share."""
        needed = self._clearing
        await self._engine.ask(lambda api: discard(api, image, list(needed.values())))

    # -- containers --------------------------------------------------------------

    async def resident(self, spec: ContainerSpec) -> Resident:
        """Tell which user of the node the container's main program is."""
        uid, _, gid = choose_profile(spec).user.partition(":")
        offset = user_offset(self._facts)
        return Resident(offset + int(uid), offset + int(gid))

    async def start(self, spec: ContainerSpec, patch: ContainerPatch) -> None:
        """Create and start the container, or finish what a crash left half done."""
        folder = container_folder(self.data_dir, spec.id)
        config = container_config(spec, patch, folder=folder, surface=self._surface())
        if spec.host_network:
            check_can_share_network(config["User"], offset=user_offset(self._facts))
        await asyncio.to_thread(
            hand_over, folder, user=config["User"], offset=user_offset(self._facts)
        )
        if patch.folders:
            person = await self.resident(spec)
            owner = (person.uid, person.gid) if os.geteuid() == 0 else None
            await asyncio.to_thread(make_places, folder.work, patch.folders, owner)
        try:
            await self._engine.ask(lambda api: self._start_on(api, spec, config))
        except RuntimeFailure as failure:
            raise blame_view(failure, patch.folders) from failure

    def _start_on(
        self, api: docker.APIClient, spec: ContainerSpec, config: dict[str, Any]
    ) -> None:
        if not has_own_network(spec):
            self._start(api, spec, config)
            return
        with self._networks.needed(
            api, spec.session_id, size=spec.cluster.size, owner=self._owner()
        ):
            self._start(api, spec, config)

    def _surface(self) -> Surface:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        limit = hard if hard != resource.RLIM_INFINITY else 1 << 20
        return Surface(
            agent_id=self._owner(),
            network=self.network,
            command=self.command,
            open_files=min(limit, 1 << 20),
            nvidia="nvidia" in (self._facts.get("Runtimes") or {}),
            cdi=bool(self._facts.get("CDISpecDirs")),
            host_network=self.allow_host_network,
            environ=self.environ,
        )

    def _start(
        self, api: docker.APIClient, spec: ContainerSpec, config: dict[str, Any]
    ) -> None:
        name = container_name(spec.id)
        try:
            api.create_container_from_config(config, name=name)  # type: ignore[no-untyped-call]
        except Exception as error:
            status = getattr(error, "status_code", None)
            if status == 404:
                raise NotThereError(
                    f"this node does not have the image {spec.image}"
                ) from error
            if status != 409:
                raise
            self._check_ours(api, spec)
        crashpoint("agent.created")
        state = api.inspect_container(name)["State"]
        if state["Status"] == "created":
            name_person(api, name, spec)
            api.start(name)

    def _check_ours(self, api: docker.APIClient, spec: ContainerSpec) -> None:
        found = api.inspect_container(container_name(spec.id))
        labels = found["Config"].get("Labels") or {}
        if labels.get(LABEL_AGENT) != self._owner():
            raise ClashError(
                f"another agent on this engine already has a container {spec.id}"
            )

    async def wind_down(self, container_id: str, grace: float) -> None:
        """Ask the container to end, and wait so long; what it printed stays."""
        await self._engine.ask(lambda api: self._wind_down(api, container_id, grace))

    def _wind_down(
        self, api: docker.APIClient, container_id: str, grace: float
    ) -> None:
        name = container_name(container_id)
        try:
            labels = api.inspect_container(name)["Config"].get("Labels") or {}
            if labels.get(LABEL_AGENT) == self._owner():
                api.stop(name, timeout=max(0, round(grace)))
        except Exception as error:
            if getattr(error, "status_code", None) != 404:
                raise

    async def stop(self, container_id: str, grace: float) -> None:
        """End and remove the container and what lies in its folder."""
        folder = container_folder(self.data_dir, container_id)
        await self._engine.ask(lambda api: self._stop(api, container_id, grace, folder))
        self._addresses.forget(container_id)

    def _stop(
        self,
        api: docker.APIClient,
        container_id: str,
        grace: float,
        folder: ContainerFolder,
    ) -> None:
        name = container_name(container_id)
        image = session_id = ""
        try:
            found = api.inspect_container(name)
        except Exception as error:
            if getattr(error, "status_code", None) != 404:
                raise
        else:
            labels = found["Config"].get("Labels") or {}
            if labels.get(LABEL_AGENT) != self._owner():
                raise ClashError(f"container {container_id} is another agent's")
            image = found["Image"]
            session_id = labels.get(LABEL_SESSION, "")
        self._clearing[container_id] = image  # which may take the image's own rm
        try:
            if image:
                _remove(api, name, grace)
                self._networks.sweep(api, self._owner(), session_id)
            empty_folders(api, folder, image)
        finally:
            del self._clearing[container_id]

    def _look(self, api: docker.APIClient) -> list[Observed]:
        owner = self._owner()
        if not owner:
            return []
        read_at = self._addresses.now()
        rows = api.containers(all=True, filters={"label": f"{LABEL_AGENT}={owner}"})
        looked = (self._observe(api, row, read_at) for row in rows)
        return [seen for seen in looked if seen is not None]

    def _observe(
        self, api: docker.APIClient, row: dict[str, Any], read_at: int
    ) -> Observed | None:
        labels = row.get("Labels") or {}
        container_id = labels.get(LABEL_CONTAINER) or row["Id"]
        session_id = labels.get(LABEL_SESSION, "")
        if row["State"] in {"running", "paused", "restarting"}:
            if row["State"] != "restarting":
                address = self._address(row)
                self._addresses.learn(container_id, address, read_at=read_at)
            return Observed(container_id, session_id, running=True)
        try:
            found = api.inspect_container(row["Id"])
        except Exception as error:
            if getattr(error, "status_code", None) == 404:
                return None  # removed between the two questions
            raise
        state = found["State"]
        if state["Running"]:
            return Observed(container_id, session_id, running=True)
        return Observed(
            container_id,
            session_id,
            running=False,
            exit_code=state["ExitCode"],
            reason=explain_end(state),
        )

    async def list(self) -> list[Observed]:
        """List the containers that carry our agent's label."""
        await self._fence_again()
        await self._sweep_again()
        return await self._engine.ask(self._look)

    def _address(self, row: dict[str, Any]) -> str:
        if row["HostConfig"]["NetworkMode"] == HOST_NETWORK:
            return HOST_NETWORK
        networks = row["NetworkSettings"]["Networks"]
        found = [
            network
            for name, network in networks.items()
            if name == self.network or name.startswith(SESSION_NETWORK)
        ]
        return str(found[0].get("IPAddress") or "") if found else ""

    async def endpoint(self, container_id: str, app: str) -> Endpoint | None:
        """Tell the address of a running container; apps other than lab have none."""
        if app != "lab":
            return None
        if known := self._addresses.get(container_id):
            return self._lead_to(container_id, known)
        name = container_name(container_id)
        for _ in range(READINGS):
            read_at = self._addresses.now()
            try:
                found = await self._engine.ask(lambda api: api.inspect_container(name))
            except NotThereError:
                return None
            state, address = found["State"], self._address(found)
            if not state["Running"] or state.get("Restarting") or not address:
                return None
            if self._addresses.learn(container_id, address, read_at=read_at):
                return self._lead_to(container_id, address)
        return None

    def _lead_to(self, container_id: str, address: str) -> Endpoint:
        """Return where JupyterLab listens: in its folder, on the node's network."""
        if address != HOST_NETWORK:
            return Endpoint(host=address, port=PORT)
        return Endpoint(socket=container_folder(self.data_dir, container_id).lab_socket)

    def measure(self, specs: Sequence[ContainerSpec]) -> dict[str, Reading]:
        """Tell what containers use, as their control groups say; the engine is slow."""
        return self._measures.read([spec.id for spec in specs])

    async def logs(self, container_id: str, tail: int) -> str:
        """Return the last lines the container printed, of both its streams."""
        return await read_log(self._engine, container_name(container_id), tail)

    async def hear_log(self, container_id: str, age: float) -> LogNews:
        """Wait until the container has printed something."""
        return await hear_log(self._engine, container_name(container_id), age)


def _remove(api: docker.APIClient, name: str, grace: float) -> None:
    """Stop and remove a container that others may be removing too."""
    try:
        api.stop(name, timeout=max(0, round(grace)))
        api.remove_container(name, v=True, force=True)
    except Exception as error:
        status = getattr(error, "status_code", None)
        going = status == 409 and "already in progress" in str(error)
        if status != 404 and not going:
            raise
