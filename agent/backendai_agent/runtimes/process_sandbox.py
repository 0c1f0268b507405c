"""Build the bubblewrap command that a session runs in. Pure: nothing is started.

The sandbox is an allow-list: the programs of the host read-only, a handful of
files of ``/etc``, the prepared environment, and the session's own two folders.
There are two ways to the same picture:

*privileged* (the agent is root): bubblewrap makes the namespaces as root and the
session is then turned into a host user of its own, who owns nothing else;
*own user namespace* (the agent is a plain user): the session is uid 1000 in a
user namespace in which no further one can be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

from backendai_agent.runtimes.base import ShownFolder

HOME: Final = "/home/work"
RUN: Final = "/run/backendai"
USER: Final = "work"
INNER_UID: Final = 1000

STARTED_FD: Final = 5
SECCOMP_FD: Final = 6
OPTIONS_FD: Final = 7
INFO_FD: Final = 8

ROOT_FOLDERS: Final = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")

HOST_ETC: Final = (
    "OpenCL",
    "alternatives",
    "ca-certificates",
    "debian_version",
    "fonts",
    "glvnd",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "magic",
    "magic.mime",
    "mime.types",
    "os-release",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "vulkan",
)
"""What of the host's ``/etc`` sessions see. No accounts, no keys, no registries."""

_PRELUDE: Final = (
    f'cd "$HOME" && echo started >&{STARTED_FD} && exec "$@"'
    f" {STARTED_FD}>&- {SECCOMP_FD}>&- {OPTIONS_FD}>&- {INFO_FD}>&-"
)
_CAPABILITIES_TO_LEAVE_ROOT: Final = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


@dataclass(frozen=True)
class HostLayout:
    """What the host looks like from ``/``: folders, links to them, parts of etc."""

    folders: tuple[str, ...]
    links: Mapping[str, str]
    etc: tuple[str, ...]


def look_at_host(root: Path = Path("/")) -> HostLayout:
    """Find which of the well-known folders and files this host has."""
    folders, links = [], {}
    for name in ROOT_FOLDERS:
        path = root / name
        if path.is_symlink():
            links[f"/{name}"] = str(path.readlink())
        elif path.is_dir():
            folders.append(f"/{name}")
    etc = tuple(name for name in HOST_ETC if (root / "etc" / name).exists())
    return HostLayout(tuple(folders), links, etc)


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """One session's sandbox. Paths are the node's unless said otherwise.

    ``uid`` is the host user a privileged sandbox turns into, with the group ``gid``
    (None: of the same number) and the further ``gids``; None asks for a user
    namespace instead. ``etc`` is a folder with the files made for this session.
    """

    bwrap: str
    host: HostLayout
    uid: int | None
    gid: int | None = None
    gids: tuple[int, ...] = ()
    work: Path
    run: Path
    etc: Path
    hostname: str = "main1"
    share_network: bool = False
    read_only: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str, bool], ...] = ()
    folders: tuple[ShownFolder, ...] = ()
    tmp_bytes: int = 0
    shm_bytes: int = 0
    environ: Mapping[str, str] = field(default_factory=dict)
    seccomp: bool = False
    disable_userns: bool = True
    sized_tmpfs: bool = True


@dataclass(frozen=True)
class SandboxCommand:
    """A command line, and the options it reads from ``OPTIONS_FD``.

    The options name folders of the node; a session can read the command line of
    its own first process, but not what that has read.
    """

    words: tuple[str, ...]
    options: bytes


def build_command(
    sandbox: Sandbox, argv: Sequence[str], *, inner: Sequence[str] = ()
) -> SandboxCommand:
    """Build what runs *argv* in *sandbox*.

    *inner* is put before *argv* inside (a wrapper that sets limits). The caller
    opens the descriptors ``OPTIONS_FD``, ``STARTED_FD`` (gets a line once
    everything is set up), ``INFO_FD`` and, with ``seccomp``, ``SECCOMP_FD``.
    """
    options = [*_namespaces(sandbox), *_filesystem(sandbox), *_process(sandbox)]
    words = (
        sandbox.bwrap,
        "--args",
        str(OPTIONS_FD),
        "--",
        *leave_root(sandbox.uid, gid=sandbox.gid, gids=sandbox.gids),
        *inner,
        *announce(argv),
    )
    return SandboxCommand(words, b"".join(f"{o}\0".encode() for o in options))


def announce(argv: Sequence[str]) -> list[str]:
    """Wrap *argv* so that it writes to ``STARTED_FD`` just before it runs.

    It also goes home first, which only the session's own user may.
    """
    return ["/bin/sh", "-c", _PRELUDE, "sh", *argv]


def _namespaces(sandbox: Sandbox) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield "--unshare-cgroup-try"
    yield from ("--hostname", sandbox.hostname)
    if not sandbox.share_network:
        yield "--unshare-net"
    if sandbox.uid is None:
        yield "--unshare-user"
        if sandbox.disable_userns:
            yield "--disable-userns"
        yield from ("--uid", str(INNER_UID), "--gid", str(INNER_UID))
    else:
        yield from ("--cap-drop", "ALL")
        for capability in _CAPABILITIES_TO_LEAVE_ROOT:
            yield from ("--cap-add", capability)


def _filesystem(sandbox: Sandbox) -> Iterator[str]:
    yield from _system(sandbox.host, sandbox.etc)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for device in sandbox.devices:
        yield from ("--dev-bind", device, device)
    yield from _tmpfs("/dev/shm", sandbox.shm_bytes, sized=sandbox.sized_tmpfs)  # noqa: S108 - the sandbox's own
    yield from ("--remount-ro", "/dev")
    yield from _tmpfs("/tmp", sandbox.tmp_bytes, sized=sandbox.sized_tmpfs)  # noqa: S108 - the sandbox's own
    targets = [HOME, RUN, "/var/x", *sandbox.read_only]
    targets += [target for _, target, _ in sandbox.mounts]
    targets += [shown.target for shown in sandbox.folders if not _in_home(shown)]
    yield from _parents(targets)
    yield from ("--symlink", "/tmp", "/var/tmp")  # noqa: S108 - the sandbox's own
    for path in sandbox.read_only:
        yield from ("--ro-bind", path, path)
    yield from ("--bind", str(sandbox.work), HOME)
    yield from ("--bind", str(sandbox.run), RUN)
    for source, target, read_only in sandbox.mounts:
        yield from ("--ro-bind" if read_only else "--bind", source, target)
    for shown in sandbox.folders:
        bind = "--ro-bind" if shown.read_only else "--bind"
        yield from (bind, shown.source, shown.target)
    yield from ("--remount-ro", "/")


def _in_home(shown: ShownFolder) -> bool:
    return shown.target.startswith(f"{HOME}/")


def _system(host: HostLayout, etc: Path) -> Iterator[str]:
    for folder in host.folders:
        yield from ("--ro-bind", folder, folder)
    for link, target in host.links.items():
        yield from ("--symlink", target, link)
    names = (*host.etc, *SYNTHESISED)
    yield from _parents(f"/etc/{name}" for name in names)
    for name in host.etc:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for name in SYNTHESISED:
        yield from ("--ro-bind", str(etc / name), f"/etc/{name}")
    yield from ("--symlink", "/proc/mounts", "/etc/mtab")


def _tmpfs(target: str, size: int, *, sized: bool) -> Iterator[str]:
    yield from ("--perms", "1777")
    if sized and size > 0:
        yield from ("--size", str(size))
    yield from ("--tmpfs", target)


def _parents(targets: Iterable[str]) -> Iterator[str]:
    """Make the folders above *targets* open to the session, each one once.

    Bubblewrap makes missing ones closed to all but their owner, who in a
    privileged sandbox is root.
    """
    made: set[str] = set()
    for target in targets:
        for parent in reversed(PurePosixPath(target).parents):
            inside_system = parent.parts[1:2] and parent.parts[1] in ROOT_FOLDERS
            if str(parent) == "/" or str(parent) in made or inside_system:
                continue
            made.add(str(parent))
            yield from ("--perms", "0755", "--dir", str(parent))


def _process(sandbox: Sandbox) -> Iterator[str]:
    yield from ("--new-session", "--chdir", "/", "--clearenv")
    for name, value in sandbox.environ.items():
        yield from ("--setenv", name, value)
    if sandbox.seccomp:
        yield from ("--seccomp", str(SECCOMP_FD))
    yield from ("--info-fd", str(INFO_FD))


def leave_root(
    uid: int | None, *, gid: int | None = None, gids: Sequence[int] = ()
) -> list[str]:
    """Return the words that turn root into *uid* for good; none without one."""
    if uid is None:
        return []
    groups = ",".join(str(group) for group in gids)
    return [
        "/usr/bin/setpriv",
        f"--reuid={uid}",
        f"--regid={uid if gid is None else gid}",
        f"--groups={groups}" if groups else "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--no-new-privs",
    ]


SYNTHESISED: Final = (
    "group",
    "hostname",
    "hosts",
    "nsswitch.conf",
    "passwd",
    "resolv.conf",
)
"""Files of ``/etc`` that are written for each session."""


def synthesise_etc(
    *,
    uid: int,
    gid: int,
    hostname: str,
    nameservers: Sequence[str],
    shell: str,
    others: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Write the files that stand for accounts, names and resolvers inside.

    *others* are the addresses of the session's other containers, by name.
    """
    return {
        "group": f"root:x:0:\n{USER}:x:{gid}:\nnogroup:x:65534:\n",
        "hostname": f"{hostname}\n",
        "hosts": f"127.0.0.1\tlocalhost {hostname}\n::1\tlocalhost\n"
        + "".join(f"{address}\t{name}\n" for name, address in others.items()),
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "passwd": (
            "root:x:0:0:root:/root:/usr/sbin/nologin\n"
            f"{USER}:x:{uid}:{gid}::{HOME}:{shell}\n"
            "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
        ),
        "resolv.conf": "".join(f"nameserver {server}\n" for server in nameservers),
    }


def base_environ(
    prefix: str, *, home: str = HOME, shell: str, room: str = ".local"
) -> dict[str, str]:
    """Return what a session's programs expect to find; secrets come by file.

    Python is the session's own (see ``process_packages``), so Jupyter is told where
    the environment keeps what is no Python package.
    """
    folders = [f"{home}/{room}/bin", f"{home}/.local/bin", f"{prefix}/bin"]
    folders += ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    return {
        "PATH": ":".join(dict.fromkeys(folders)),
        "VIRTUAL_ENV": f"{home}/{room}",
        "JUPYTER_PATH": f"{prefix}/share/jupyter",
        "JUPYTER_CONFIG_PATH": f"{prefix}/etc/jupyter",
        "JUPYTERLAB_DIR": f"{prefix}/share/jupyter/lab",
        "HOME": home,
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": shell,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }
