"""What the engine says of itself and of an ended container, put into words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from backendai_hub.core.agents import Isolation

KILLED: Final = 137


def explain_end(state: dict[str, Any]) -> str:
    """Say in words how a container ended, from the engine's ``State``."""
    code = state.get("ExitCode", 0)
    if state.get("OOMKilled"):
        return "out of memory"
    if state.get("Status") == "created":
        return (
            f"never started: {state['Error']}"
            if state.get("Error")
            else ("never started")
        )
    if state.get("Error"):
        return f"the container engine ended it: {state['Error']}"
    if code == KILLED:
        return "killed (signal 9)"
    if code > 128:
        return f"ended by signal {code - 128}"
    return f"exited with code {code}"


def user_offset(info: dict[str, Any]) -> int:
    """Return where the engine's users begin on the node (``userns-remap``)."""
    if not any("name=userns" in option for option in info.get("SecurityOptions") or []):
        return 0
    first, _, _ = Path(info.get("DockerRootDir", "")).name.partition(".")
    return int(first) if first.isdecimal() else 0


def judge(info: dict[str, Any], version: dict[str, Any]) -> Isolation:
    """Say what this engine's containers keep apart, and what a site should change."""
    remapped = user_offset(info) > 0
    notes = []
    if not info.get("LiveRestoreEnabled"):
        notes.append(
            "live restore is off: restarting Docker would end every session; put"
            ' {"live-restore": true} into /etc/docker/daemon.json and reload Docker'
        )
    if not any("name=seccomp" in o for o in info.get("SecurityOptions") or []):
        notes.append("the engine filters no system calls (seccomp is off)")
    if not remapped:
        notes.append(
            "root in a session is root's number on the node; userns-remap would"
            " keep them apart"
        )
    runc = next(
        (c["Version"] for c in version.get("Components") or [] if c["Name"] == "runc"),
        "unknown",
    )
    notes.append(
        f"Docker {info.get('ServerVersion')}, runc {runc}, storage {info.get('Driver')}"
    )
    return Isolation(
        runtime="docker",
        tier="container with own users" if remapped else "container",
        limits=f"cgroup v{info.get('CgroupVersion') or 1}",
        network="bridge",
        multi_user=True,
        notes=notes,
    )


def fence(
    judged: Isolation, *, breach: str, left_to_site: bool, tolerated: bool
) -> Isolation:
    """Add to *judged* what is true of the firewall; *breach* says why there is none.

    Without it a session reaches whatever trusts the node's own addresses, so the
    node keeps users apart only if the site says that nothing there matters.
    """
    if left_to_site:
        note = (
            "the firewall is left to the site: sessions may be able to reach this"
            " node's own services"
        )
        return msgspec.structs.replace(judged, notes=[note, *judged.notes])
    if breach:
        note = f"SESSIONS CAN REACH THIS NODE'S OWN SERVICES: {breach}"
        if not tolerated:
            note += (
                "; only one user at a time may be here, until the firewall can be set"
                " or DockerRuntime.allow_reaching_host is"
            )
        return msgspec.structs.replace(
            judged, multi_user=tolerated, notes=[note, *judged.notes]
        )
    return msgspec.structs.replace(judged, network="fenced bridge")


def share_network(judged: Isolation) -> Isolation:
    """Add to *judged* what is given up where sessions may be on the node's network."""
    note = (
        "SESSIONS OF RESOURCE GROUPS WITH HOST NETWORKING SHARE THIS NODE'S NETWORK:"
        " they reach its own services, the cloud's metadata and the ports of other"
        " sessions"
    )
    return msgspec.structs.replace(judged, notes=[note, *judged.notes])
