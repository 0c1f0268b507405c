"""The system call filter, run through a small interpreter of the kernel's rules."""

from __future__ import annotations

import errno
import struct

import pytest

from backendai_agent.runtimes.process_seccomp import build_filter

ALLOW = 0x7FFF0000
X86_64, AARCH64, I386 = 0xC000003E, 0xC00000B7, 0x40000003
CALLS = {
    "x86_64": {"read": 0, "mount": 165, "unshare": 272, "clone": 56, "socket": 41},
    "aarch64": {"read": 63, "mount": 40, "unshare": 97, "clone": 220, "socket": 198},
}
MACHINES = [("x86_64", X86_64), ("aarch64", AARCH64)]
NEWUSER, NEWNET, THREAD = 0x10000000, 0x40000000, 0x003D0F00


def decide(program: bytes, architecture: int, number: int, first: int = 0) -> str:
    """Run *program* as the kernel would; returns "allow" or an error's name."""
    call = struct.pack("=iIQQ", number, architecture, 0, first)
    steps = list(struct.iter_unpack("=HBBI", program))
    value, at = 0, 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", call, operand)
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x45:
                at += yes if value & operand else no
            case 0x06:
                return (
                    "allow" if operand == ALLOW else errno.errorcode[operand & 0xFFFF]
                )
            case _:
                raise AssertionError(f"unknown step {code:#x}")


@pytest.mark.parametrize(("machine", "architecture"), MACHINES)
def test_ordinary_calls_pass_and_powerful_ones_do_not(
    machine: str, architecture: int
) -> None:
    program = build_filter(machine)
    assert program is not None
    calls = CALLS[machine]
    assert decide(program, architecture, calls["read"]) == "allow"
    assert decide(program, architecture, calls["mount"]) == "EPERM"
    assert decide(program, architecture, 425) == "EPERM"  # io_uring_setup
    assert decide(program, architecture, 435) == "ENOSYS"  # clone3


@pytest.mark.parametrize(("machine", "architecture"), MACHINES)
def test_threads_are_made_and_namespaces_are_not(
    machine: str, architecture: int
) -> None:
    program = build_filter(machine)
    assert program is not None
    calls = CALLS[machine]
    for name in ("clone", "unshare"):
        assert decide(program, architecture, calls[name], NEWUSER) == "EPERM"
        assert decide(program, architecture, calls[name], NEWNET | 17) == "EPERM"
    assert decide(program, architecture, calls["clone"], THREAD) == "allow"
    assert decide(program, architecture, calls["clone"], 17) == "allow"
    assert decide(program, architecture, calls["unshare"], 0x400) == "allow"


@pytest.mark.parametrize(("machine", "architecture"), MACHINES)
def test_sockets_past_the_network_namespace_are_refused(
    machine: str, architecture: int
) -> None:
    program = build_filter(machine)
    assert program is not None
    number = CALLS[machine]["socket"]
    verdicts = {f: decide(program, architecture, number, f) for f in (1, 2, 10, 38, 40)}
    assert verdicts == {1: "allow", 2: "allow", 10: "allow", 38: "EPERM", 40: "EPERM"}


def test_other_calling_conventions_are_no_way_around() -> None:
    program = build_filter("x86_64")
    assert program is not None
    assert decide(program, I386, 0) == "EPERM"
    assert decide(program, X86_64, 0x40000000 | 165) == "ENOSYS"


def test_an_unknown_machine_has_no_filter() -> None:
    assert build_filter("vax") is None
