"""The sandbox's command line, and the files that stand for the host's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from backendai_agent.runtimes.base import ShownFolder
from backendai_agent.runtimes.process_sandbox import (
    HostLayout,
    Sandbox,
    SandboxCommand,
    base_environ,
    build_command,
    look_at_host,
    synthesise_etc,
)

BASE = Sandbox(
    bwrap="/usr/bin/bwrap",
    host=HostLayout(("/usr",), {"/bin": "usr/bin"}, ("ssl/certs", "localtime")),
    uid=200007,
    work=Path("/data/c/work"),
    run=Path("/data/c/run"),
    etc=Path("/data/c/etc"),
    read_only=("/root/python/3.11", "/srv/venv"),
    tmp_bytes=1 << 30,
    shm_bytes=64 << 20,
    environ={"HOME": "/home/work"},
    seccomp=True,
)
PLAIN = replace(BASE, uid=None)


def options(sandbox: Sandbox) -> list[str]:
    return build_command(sandbox, ["lab"]).options.decode().split("\0")[:-1]


def has(words: list[str], *wanted: str) -> bool:
    size = len(wanted)
    return any(tuple(words[i : i + size]) == wanted for i in range(len(words)))


def bound(words: list[str]) -> set[str]:
    """What of the node is bound into the sandbox."""
    kinds = {"--bind", "--ro-bind", "--ro-bind-try", "--dev-bind"}
    return {words[i + 1] for i, word in enumerate(words) if word in kinds}


def test_only_what_is_listed_of_the_node_is_shown() -> None:
    made = {f"/data/c/etc/{name}" for name in synthesise_all()}
    assert bound(options(BASE)) - made == {
        "/usr",
        "/etc/ssl/certs",
        "/etc/localtime",
        "/root/python/3.11",
        "/srv/venv",
        "/data/c/work",
        "/data/c/run",
    }


def synthesise_all() -> dict[str, str]:
    return synthesise_etc(
        uid=200007,
        gid=200007,
        hostname="main1",
        nameservers=["10.0.2.3"],
        shell="/bin/bash",
    )


def test_root_gives_its_power_away_before_the_session_begins() -> None:
    words = options(BASE)
    assert has(words, "--cap-drop", "ALL")
    assert "--unshare-user" not in words
    command = build_command(BASE, ["lab"])
    inside = command.words[command.words.index("--") + 1 :]
    assert inside[0] == "/usr/bin/setpriv"
    assert {"--reuid=200007", "--bounding-set=-all", "--no-new-privs"} <= set(inside)
    assert inside.index("--clear-groups") < inside.index("lab")


def test_a_plain_user_gets_a_user_namespace_without_further_ones() -> None:
    words = options(PLAIN)
    assert has(words, "--unshare-user", "--disable-userns", "--uid", "1000")
    assert "--cap-add" not in words
    assert "/usr/bin/setpriv" not in build_command(PLAIN, ["lab"]).words


def test_everything_is_unshared_and_the_network_only_on_request() -> None:
    for sandbox in (BASE, PLAIN):
        words = options(sandbox)
        assert {"--unshare-pid", "--unshare-ipc", "--unshare-net"} <= set(words)
        assert "--new-session" in words
        assert "--die-with-parent" not in words
        shared = options(replace(sandbox, share_network=True))
        assert "--unshare-net" not in shared


def test_nothing_but_the_sessions_own_folders_can_be_written() -> None:
    words = options(BASE)
    writable = {words[i + 1] for i, word in enumerate(words) if word == "--bind"}
    assert writable == {"/data/c/work", "/data/c/run"}
    assert words.index("--remount-ro") < len(words)
    assert has(words, "--remount-ro", "/")
    assert has(words, "--remount-ro", "/dev")
    assert has(words, "--perms", "1777", "--size", str(1 << 30), "--tmpfs", "/tmp")
    assert has(words, "--size", str(64 << 20), "--tmpfs", "/dev/shm")


def test_folders_above_what_is_shown_are_open_to_the_session() -> None:
    words = options(BASE)
    for folder in ("/root", "/root/python", "/etc", "/home"):
        assert has(words, "--perms", "0755", "--dir", folder)
    assert not has(words, "--dir", "/usr")


def test_an_old_bubblewrap_gets_no_sizes() -> None:
    assert "--size" not in options(replace(BASE, sized_tmpfs=False))


def test_devices_and_mounts_are_added_where_they_were_asked() -> None:
    words = options(
        replace(
            BASE,
            devices=("/dev/nvidia0",),
            mounts=(("/data/a", "/opt/a", True), ("/data/b", "/home/work/b", False)),
        )
    )
    assert has(words, "--dev-bind", "/dev/nvidia0", "/dev/nvidia0")
    assert has(words, "--ro-bind", "/data/a", "/opt/a")
    assert has(words, "--bind", "/data/b", "/home/work/b")
    home = words.index("/data/c/work")
    assert words.index("/data/b") > home  # a mount in the home goes over the home


def test_folders_go_over_the_home_and_what_is_above_them_is_open() -> None:
    folders = (
        ShownFolder("/agent/mounts/c/0", "/home/work/a"),
        ShownFolder("/srv/x", "/data/sets/x", read_only=True),
    )
    words = options(replace(BASE, folders=folders))
    assert has(words, "--bind", "/agent/mounts/c/0", "/home/work/a")
    assert has(words, "--ro-bind", "/srv/x", "/data/sets/x")
    assert words.index("/agent/mounts/c/0") > words.index("/data/c/work")
    assert has(words, "--perms", "0755", "--dir", "/data/sets")
    assert words[words.index("/srv/x") :].count("--remount-ro") == 1


def test_the_nodes_folders_are_not_on_the_command_line() -> None:
    command: SandboxCommand = build_command(BASE, ["lab"])
    assert not [word for word in command.words if "/data/" in word]
    assert b"/data/c/work" in command.options


def test_the_host_is_described_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "etc" / "ssl" / "certs").mkdir(parents=True)
    (tmp_path / "etc" / "shadow").write_text("secret")
    host = look_at_host(tmp_path)
    assert host == HostLayout(("/usr",), {"/bin": "usr/bin"}, ("ssl/certs",))


def test_accounts_inside_are_the_session_and_nobody_real() -> None:
    files = synthesise_all()
    assert "work:x:200007:200007::/home/work:/bin/bash" in files["passwd"]
    assert files["resolv.conf"] == "nameserver 10.0.2.3\n"
    assert len(files["passwd"].splitlines()) == 3


def test_programs_of_the_session_and_of_the_environment_come_first() -> None:
    environ = base_environ("/srv/venv", shell="/bin/sh")
    assert environ["PATH"].startswith("/home/work/.local/bin:/srv/venv/bin:")
    assert environ["JUPYTER_PATH"] == "/srv/venv/share/jupyter"
    usr = base_environ("/usr", shell="/bin/sh")["PATH"].split(":")
    assert len(usr) == len(set(usr))
