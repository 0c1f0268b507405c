"""The node's own processors and memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from traitlets import Float, Unicode, default
from traitlets.config import Configurable

from backendai_agent.runtimes.base import ContainerPatch
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.agents import Device
from backendai_hub.core.slots import parse_amount


class HostAccelerator(Configurable):
    """Processors and memory this process may use, less what is kept for the node."""

    name = "host"

    reserved_cpu = Unicode(help="Cores kept for the node itself, as '0.5'.").tag(
        config=True
    )
    reserved_memory = Unicode(help="Memory kept for the node itself, as '1g'.").tag(
        config=True
    )
    cpu_overcommit = Float(
        1.0,
        min=1.0,
        max=64.0,
        help="""Offer so many times the cores there are. Notebooks mostly wait for
        their people; with 4, four of them share a core that each may use alone.""",
    ).tag(config=True)
    root = Unicode("/", help="Where the system's /proc and /sys lie.")

    @default("reserved_cpu")
    def _default_reserved_cpu(self) -> Any:
        return getattr(self.parent, "reserved_cpu", "0")

    @default("reserved_memory")
    def _default_reserved_memory(self) -> Any:
        return getattr(self.parent, "reserved_memory", "0")

    def discover(self) -> Sequence[Device]:
        """Describe the node as one device that sessions share."""
        root = Path(self.root)
        cpu = 1000 * len(os.sched_getaffinity(0))
        quota = read_cpu_quota(root)
        memory = read_memory(root)
        limit = read_memory_limit(root)
        cpu = min(cpu, quota) if quota else cpu
        memory = min(memory, limit) if limit else memory
        cpu = int(cpu * self.cpu_overcommit)
        slots = {
            "cpu": max(0, cpu - parse_amount("cpu", self.reserved_cpu)),
            "mem": max(0, memory - parse_amount("mem", self.reserved_memory)),
        }
        return [Device(id="host", slots=slots, model=_read_model(root))]

    def attach(self, shares: Sequence[DeviceShare]) -> ContainerPatch:
        """Add nothing: runtimes limit processors and memory themselves."""
        return ContainerPatch()


def read_memory(root: Path) -> int:
    """Return the machine's memory in bytes."""
    for line in (root / "proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise ValueError("/proc/meminfo names no MemTotal")


def read_memory_limit(root: Path) -> int | None:
    """Return the memory limit of our own control group, if it has one."""
    for controller, name in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        for folder in _control_groups(root, controller):
            text = _read(folder / name)
            if text.isdigit() and int(text) < 1 << 60:
                return int(text)
    return None


def read_cpu_quota(root: Path) -> int | None:
    """Return the thousandths of a core our own control group may use, if limited."""
    for folder in _control_groups(root, "cpu"):
        quota = _read(folder / "cpu.cfs_quota_us")
        period = _read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit():
            return int(quota) * 1000 // int(period)
    for folder in _control_groups(root, ""):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit():
            return int(quota) * 1000 // int(period)
    return None


def _control_groups(root: Path, controller: str) -> list[Path]:
    """List our control group and those above it, nearest first.

    *controller* names a version 1 hierarchy, nothing the version 2 one. Inside a
    container the paths of ``/proc/self/cgroup`` may not exist; the root then is us.
    """
    mount = root / "sys/fs/cgroup" / controller
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            own = mount / path.lstrip("/")
            above = [p for p in (own, *own.parents) if p.is_relative_to(mount)]
            return [folder for folder in above if folder.is_dir()]
    return []


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _read_model(root: Path) -> str:
    for line in _read(root / "proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return ""
