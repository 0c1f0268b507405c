"""What this node can do for sessions, found out once when the agent starts."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.process_environment import (
    Environment,
    EnvironmentUnusableError,
    ask_environment,
)
from backendai_agent.runtimes.process_limits import Limits, LimitsFailure
from backendai_agent.runtimes.process_limits_probe import choose_limits
from backendai_agent.runtimes.process_network import NAMESERVER, why_no_slirp
from backendai_agent.runtimes.process_plain import (
    find_closed,
    place_containers,
    try_plainly,
)
from backendai_agent.runtimes.process_tiers import (
    NAMESPACES,
    NONE,
    Tier,
    probe_tier,
    try_sandbox,
)
from backendai_hub.core.agents import Isolation

_NEEDS: Final = (
    "import encodings, importlib.util, ssl, sys\n"
    "for name in sys.argv[1:]:\n"
    "    if importlib.util.find_spec(name) is None:\n"
    "        sys.exit(f'it finds no {name}')\n"
)
_LOUD: Final = (
    "NO ISOLATION: sessions can read and change everything the agent's user can;"
    " this node serves one user only"
)
_LOUD_AS_ROOT: Final = (
    "NO ISOLATION: sessions are plain processes of this machine. They are not root,"
    " but users without rights of their own; they can read what every user here can,"
    " see all processes and reach its network. This node serves one user only"
)


@dataclass(frozen=True, kw_only=True)
class NodeWishes:
    """What the configuration asks of the node."""

    folder: Path
    environments: Mapping[str, str]
    module: str
    isolation: str
    limits: str
    network: str
    bwrap: str
    slirp: str
    uid: int
    cgroup_prefix: str
    open_folder: Path


@dataclass(frozen=True, kw_only=True)
class Node:
    """What the node can do. ``network`` is one of slirp, none and host."""

    tier: Tier
    limits: Limits
    network: str
    slirp: str | None
    nameservers: tuple[str, ...]
    environments: Mapping[str, Environment]
    unusable: Mapping[str, str]
    isolation: Isolation

    @property
    def own_users(self) -> bool:
        """Tell whether every session is a host user of its own."""
        return self.tier.privileged or (not self.tier.isolated and os.geteuid() == 0)


def look_at_node(wishes: NodeWishes) -> Node:
    """Try everything out; raises RuntimeFailure if no session could be served."""
    tier = _choose_tier(wishes)
    if not tier.isolated and os.geteuid() == 0:
        place_containers(wishes.folder, wishes.open_folder)
    limits, weaker = _choose_limits(wishes)
    network, slirp, why_network = _choose_network(wishes, tier)
    environments, unusable = _choose_environments(wishes, tier)
    if not environments:
        raise RuntimeFailure("; ".join(unusable.values()))
    notes = [*tier.notes, *limits.notes]
    notes += weaker if limits.kind == "watchdog" else []
    notes += [*why_network, *unusable.values()]
    isolation = Isolation(
        runtime="process",
        tier=tier.name,
        limits=limits.kind,
        network={"slirp": "slirp4netns"}.get(network, network),
        multi_user=tier.isolated,
        notes=notes,
    )
    return Node(
        tier=tier,
        limits=limits,
        network=network,
        slirp=slirp,
        nameservers=nameservers(network),
        environments=environments,
        unusable=unusable,
        isolation=isolation,
    )


def look_again(node: Node, wishes: NodeWishes, name: str) -> Node:
    """Try the environment *name* once more: it may have been prepared since."""
    only = replace(wishes, environments={name: wishes.environments[name]})
    usable, unusable = _choose_environments(only, node.tier)
    before = node.unusable.get(name)
    notes = [note for note in node.isolation.notes if note != before]
    others = {n: why for n, why in node.unusable.items() if n != name}
    return replace(
        node,
        environments={**node.environments, **usable},
        unusable=others | unusable,
        isolation=msgspec.structs.replace(
            node.isolation, notes=[*notes, *unusable.values()]
        ),
    )


def _choose_tier(wishes: NodeWishes) -> Tier:
    if wishes.isolation == NONE:
        tier = Tier(NONE, notes=("isolation is switched off in the configuration",))
    else:
        tier = probe_tier(wishes.folder, bwrap=wishes.bwrap, uid=wishes.uid)
    if tier.isolated:
        return tier
    why = "; ".join(tier.notes)
    if wishes.isolation == NAMESPACES:
        raise RuntimeFailure(f"sessions cannot be shut off from one another: {why}")
    loud = _LOUD_AS_ROOT if os.geteuid() == 0 else _LOUD
    return replace(tier, notes=(loud, *tier.notes))


def _choose_limits(wishes: NodeWishes) -> tuple[Limits, list[str]]:
    own = hashlib.sha256(str(wishes.folder).encode()).hexdigest()[:8]
    try:
        return choose_limits(f"{wishes.cgroup_prefix}/{own}", wanted=wishes.limits)
    except LimitsFailure as error:
        raise RuntimeFailure(f"sessions cannot be limited: {error}") from error


def _choose_network(
    wishes: NodeWishes, tier: Tier
) -> tuple[str, str | None, tuple[str, ...]]:
    """Return the network, the helper's path, and what there is to say about it."""
    if not tier.isolated:
        return "host", None, ()
    if wishes.network == "host":
        loud = "sessions share this node's network and reach all that listens on it"
        return "host", None, (loud,)
    if wishes.network == "none":
        return "none", None, ()
    program = shutil.which(wishes.slirp)
    missing = why_no_slirp(program)
    if not missing:
        reach = "sessions reach what this node reaches, but for loopback and link-local"
        return "slirp", program, (reach,)
    if wishes.network == "slirp":
        raise RuntimeFailure(f"sessions cannot have a network: {missing}")
    return "none", None, (f"sessions have no network: {missing}",)


def nameservers(network: str) -> tuple[str, ...]:
    """Return who answers for names to sessions on *network*."""
    if network == "slirp":
        return (NAMESERVER,)
    if network == "none":
        return ()
    try:
        lines = Path("/etc/resolv.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    words = [line.split() for line in lines]
    return tuple(w[1] for w in words if len(w) > 1 and w[0] == "nameserver")


def _choose_environments(
    wishes: NodeWishes, tier: Tier
) -> tuple[dict[str, Environment], dict[str, str]]:
    """Return the environments that work in the sandbox, and why others do not."""
    usable: dict[str, Environment] = {}
    unusable: dict[str, str] = {}
    for name, prefix in wishes.environments.items():
        try:
            environment = ask_environment(name, prefix, module=wishes.module)
            _try_environment(environment, wishes, tier)
        except EnvironmentUnusableError as error:
            unusable[name] = str(error)
        else:
            usable[name] = environment
    return usable, unusable


def _try_environment(environment: Environment, wishes: NodeWishes, tier: Tier) -> None:
    if tier.template is None:
        _try_without_sandbox(environment, wishes)
        return
    template = replace(tier.template, read_only=environment.paths)
    program = [environment.python, "-I", "-c", "import encodings, ssl"]
    failure = try_sandbox(template, wishes.folder, tier.seccomp, program).failure
    if failure:
        raise EnvironmentUnusableError(
            f"environment {environment.name}: {environment.python} does not run in a"
            f" sandbox: {failure}"
        )


def _try_without_sandbox(environment: Environment, wishes: NodeWishes) -> None:
    """See whether a session's user, who is not root, can run the environment."""
    if os.geteuid() != 0:
        return
    program = [environment.python, "-I", "-c", _NEEDS, *filter(None, [wishes.module])]
    failure = try_plainly(program, wishes.uid)
    if not failure:
        return
    closed = find_closed([environment.python, *environment.paths])
    if not closed:
        raise EnvironmentUnusableError(
            f"environment {environment.name}: {environment.python} does not run as a"
            f" user that is not root: {failure}"
        )
    raise EnvironmentUnusableError(
        f"environment {environment.name}: {closed} is in the way. Without isolation"
        " sessions do not run as root, and no other user can read"
        f" {environment.prefix} and the Python it was made from: install"
        " bubblewrap, or put both where everybody can read them, as in /opt"
    )
