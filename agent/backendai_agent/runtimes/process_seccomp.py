"""A system call filter for sessions, as the kernel's own small programs.

It refuses what no notebook needs and what kernel bugs are made of: mounting, new
namespaces, keyrings, BPF, io_uring, userfaultfd, and sockets that are not confined
by a network namespace (AF_VSOCK reaches the hypervisor, AF_ALG the crypto code).
Everything else stays allowed, so debuggers and profilers of one's own programs
work. Only the machine's native system calls are allowed at all.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from typing import Final

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_IF_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_IF_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000

_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST_ARGUMENT = 0, 4, 16

_NEW_NAMESPACES: Final = (
    0x00000080  # CLONE_NEWTIME
    | 0x00020000  # CLONE_NEWNS
    | 0x02000000  # CLONE_NEWCGROUP
    | 0x04000000  # CLONE_NEWUTS
    | 0x08000000  # CLONE_NEWIPC
    | 0x10000000  # CLONE_NEWUSER
    | 0x20000000  # CLONE_NEWPID
    | 0x40000000  # CLONE_NEWNET
)
_CLONE_MASK: Final = _NEW_NAMESPACES & ~0x000000FF
"""For ``clone`` the low byte is the exit signal, not flags."""

_X32_BIT: Final = 0x40000000
_REFUSED_SOCKETS: Final = (38, 40)  # AF_ALG, AF_VSOCK

_ARCHITECTURES: Final[Mapping[str, int]] = {
    "x86_64": 0xC000003E,
    "aarch64": 0xC00000B7,
}

_SHARED: Final[Mapping[str, int]] = {
    "pidfd_getfd": 438,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "open_tree_attr": 467,
}
_REFUSED: Final[Mapping[str, Mapping[str, int]]] = {
    "x86_64": {
        "mount": 165,
        "umount2": 166,
        "pivot_root": 155,
        "chroot": 161,
        "setns": 308,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "bpf": 321,
        "userfaultfd": 323,
        "perf_event_open": 298,
        "kexec_load": 246,
        "kexec_file_load": 320,
        "init_module": 175,
        "finit_module": 313,
        "delete_module": 176,
        "reboot": 169,
        "swapon": 167,
        "swapoff": 168,
        "acct": 163,
        "quotactl": 179,
        "iopl": 172,
        "ioperm": 173,
        "syslog": 103,
        "open_by_handle_at": 304,
        "name_to_handle_at": 303,
        "lookup_dcookie": 212,
        "settimeofday": 164,
        "clock_settime": 227,
        "adjtimex": 159,
        "vhangup": 153,
        "uselib": 134,
        "modify_ldt": 154,
    },
    "aarch64": {
        "mount": 40,
        "umount2": 39,
        "pivot_root": 41,
        "chroot": 51,
        "setns": 268,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "bpf": 280,
        "userfaultfd": 282,
        "perf_event_open": 241,
        "kexec_load": 104,
        "kexec_file_load": 294,
        "init_module": 105,
        "finit_module": 273,
        "delete_module": 106,
        "reboot": 142,
        "swapon": 224,
        "swapoff": 225,
        "acct": 89,
        "quotactl": 60,
        "syslog": 116,
        "open_by_handle_at": 265,
        "name_to_handle_at": 264,
        "lookup_dcookie": 18,
        "settimeofday": 170,
        "clock_settime": 112,
        "adjtimex": 171,
        "vhangup": 58,
    },
}
_LOOKED_INTO: Final[Mapping[str, Mapping[str, int]]] = {
    "x86_64": {"clone": 56, "clone3": 435, "unshare": 272, "socket": 41},
    "aarch64": {"clone": 220, "clone3": 435, "unshare": 97, "socket": 198},
}


def build_filter(machine: str) -> bytes | None:
    """Return the filter for *machine* (as ``uname -m`` says), None if unknown."""
    if machine not in _ARCHITECTURES:
        return None
    calls = _LOOKED_INTO[machine]
    refuse, absent = _answer(errno.EPERM), _answer(errno.ENOSYS)
    program = [
        _step(_LOAD, _AT_ARCHITECTURE),
        _step(_IF_EQUAL, _ARCHITECTURES[machine], yes=1),
        refuse,
        _step(_LOAD, _AT_NUMBER),
    ]
    if machine == "x86_64":
        program += [_step(_IF_AT_LEAST, _X32_BIT, no=1), absent]
    # The C library falls back from clone3, whose flags no filter can read.
    program += [_step(_IF_EQUAL, calls["clone3"], no=1), absent]
    for number in sorted({*_SHARED.values(), *_REFUSED[machine].values()}):
        program += [_step(_IF_EQUAL, number, no=1), refuse]
    program += _with_any_bit(calls["unshare"], _NEW_NAMESPACES)
    program += _with_any_bit(calls["clone"], _CLONE_MASK)
    program += [
        _step(_IF_EQUAL, calls["socket"], no=1 + 2 * len(_REFUSED_SOCKETS)),
        _step(_LOAD, _AT_FIRST_ARGUMENT),
    ]
    for family in _REFUSED_SOCKETS:
        program += [_step(_IF_EQUAL, family, no=1), refuse]
    program.append(_step(_RETURN, _ALLOW))
    return b"".join(program)


def _with_any_bit(number: int, bits: int) -> list[bytes]:
    """Refuse call *number* if its first argument has any of *bits*."""
    return [
        _step(_IF_EQUAL, number, no=4),
        _step(_LOAD, _AT_FIRST_ARGUMENT),
        _step(_IF_ANY_BIT, bits, no=1),
        _answer(errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]


def _answer(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
