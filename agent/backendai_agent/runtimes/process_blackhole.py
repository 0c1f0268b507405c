"""Close an address range in a session's network namespace, then open the way out.

Run as a program of its own::

    python -I -S process_blackhole.py PID [FD] -- COMMAND …

``PID`` is a process in the namespace, ``FD`` an open user namespace that owns it (for
agents that are not root). A child enters the namespace and closes link-local
addresses, where clouds hand out the machine's own credentials; only when that is done
does this process become COMMAND, which connects the namespace to the outside. Without
FD it has mounts of its own by then: slirp4netns takes all it sees away to shut itself
in, which the machine's mounts would follow wherever they are shared. No
other program is executed inside: a plain user's powers over the namespace would be
lost by that. Sessions hold no power over their network and cannot open it again.
"""

import ctypes
import errno
import os
import socket
import struct
import sys

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_REC, MS_SLAVE = 0x4000, 1 << 19
RTM_NEWROUTE = 24
NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 0x1, 0x4, 0x400
RT_TABLE_MAIN, RTPROT_STATIC, RTN_BLACKHOLE = 254, 4, 6
RTA_DST = 1
CLOSED, CLOSED_BITS = "169.254.0.0", 16


def enter(descriptor: int, kind: int) -> None:
    """Move this process into a namespace; raises OSError."""
    call("setns", descriptor, kind)


def keep_mounts_apart() -> None:
    """Let nothing that this process does to its mounts reach the machine's."""
    call("unshare", CLONE_NEWNS)
    call("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None)


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def route_message() -> bytes:
    """Build the netlink request for a blackhole route (rtnetlink(7))."""
    route = struct.pack(
        "=BBBBBBBBI",
        socket.AF_INET,
        CLOSED_BITS,
        0,
        0,
        RT_TABLE_MAIN,
        RTPROT_STATIC,
        0,
        RTN_BLACKHOLE,
        0,
    )
    attribute = struct.pack("=HH", 8, RTA_DST) + socket.inet_aton(CLOSED)
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE
    length = 16 + len(route) + len(attribute)
    return struct.pack("=IHHII", length, RTM_NEWROUTE, flags, 1, 0) + route + attribute


def close_range(pid: int, owner: int | None) -> bool:
    """Close the range in the namespace of a process; this process stays in there."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if owner is not None:
        enter(owner, CLONE_NEWUSER)
    enter(network, CLONE_NEWNET)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.sendto(route_message(), (0, 0))
        (code,) = struct.unpack_from("=i", link.recv(4096), 16)
    # It may be closed already: the helper is started again after it has died.
    return code in {0, -errno.EEXIST}


def main(arguments: list[str]) -> int:
    """Close the range, then become the command."""
    cut = arguments.index("--")
    where, command = arguments[:cut], arguments[cut + 1 :]
    owner = int(where[1]) if len(where) > 1 else None
    child = os.fork()
    if child == 0:
        closed = False
        try:
            closed = close_range(int(where[0]), owner)
        finally:
            os._exit(0 if closed else 1)
    _, status = os.waitpid(child, 0)
    if status == 0:
        if owner is None:
            keep_mounts_apart()
        os.execv(command[0], command)  # noqa: S606 - one program becomes another
    sys.stderr.write("link-local addresses cannot be closed: no network\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
