"""Provides what the tests need, runs a command, and clears everything away again.

    python tests/provision.py python -m pytest …

As root on Debian missing packages are installed. A Docker Engine and a PostgreSQL
server are started if none is there; they are stopped at the end, whatever happens.
What cannot be provided is said once; the tests that need it then skip themselves
(or fail, with ``CI=true``: see requirement_marks.py).
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WAIT_SECONDS = 60.0

# The program (or file) that tells whether a package is there, and its package.
PACKAGES = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "debootstrap": "debootstrap",
    "docker-registry": "docker-registry",
    "dockerd": "docker.io",
    "glusterd": "glusterfs-server",
    "ip": "iproute2",
    "iptables": "iptables",
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.ext4": "e2fsprogs",
    "ps": "procps",
    "slirp4netns": "slirp4netns",
    "/usr/lib/postgresql": "postgresql",
    "/usr/share/fonts/truetype/dejavu": "fonts-dejavu-core",
}


def say(text: str) -> None:
    print(f"→ {text}", file=sys.stderr, flush=True)


def complain(text: str) -> None:
    print(f"! {text}", file=sys.stderr, flush=True)


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if ready():
            return True
        time.sleep(0.1)
    return False


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
    if process.poll() is not None:
        return
    process.send_signal(number)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(path: Path) -> str:
    return "\n".join(path.read_text("utf-8", "replace").splitlines()[-8:])


def is_present(thing: str) -> bool:
    if thing.startswith("/"):
        return Path(thing).exists()
    return shutil.which(thing, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is not None


def install_packages() -> None:
    missing = [package for thing, package in PACKAGES.items() if not is_present(thing)]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        complain(f"not installed: {' '.join(missing)} (apt-get needs root)")
        return
    say(f"installing {' '.join(missing)}")
    log = Path(tempfile.gettempdir()) / "backendai-apt.log"
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # Installed servers must not start by themselves: we start our own, and stop them.
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n", "ascii")
        policy.chmod(0o755)
    try:
        with log.open("wb") as output:
            for argv in (
                ["apt-get", "-q", "update"],
                ["apt-get", "-qy", "install", "--no-install-recommends", *missing],
            ):
                done = subprocess.run(
                    argv, env=environ, stdout=output, stderr=output, check=False
                )
                if done.returncode:
                    complain(f"{' '.join(argv[:3])} failed:\n{tail(log)}")
                    return
    finally:
        if ours:
            policy.unlink()


def docker_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    argv = ["docker", "version", "--format", "{{.Server.Version}}"]
    done = subprocess.run(argv, capture_output=True, check=False)
    return done.returncode == 0


def provide_docker(stack: ExitStack, folder: Path) -> bool:
    if docker_answers():
        return True
    program = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None or os.geteuid() != 0:
        complain("no Docker Engine answers, and none can be started")
        return False
    say("starting a Docker Engine")
    log = folder / "dockerd.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "--live-restore"],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    stack.callback(stop, process)
    if wait_until(docker_answers, process):
        return True
    complain(f"the Docker Engine did not start:\n{tail(log)}")
    return False


def build_session_image() -> None:
    """Build the image that sessions run in; quick when nothing in it changed."""
    say("building the session image")
    argv = [sys.executable, "-m", "images.build", "jupyterlab", "--json"]
    done = subprocess.run(
        argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        complain("the session image could not be built")
        return
    built = json.loads(done.stdout)
    os.environ["BACKENDAI_TEST_SESSION_IMAGE"] = built["reference"]


def find_postgres() -> Path | None:
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = sorted(versions, key=lambda path: int(path.parts[-3]))
    if newest:
        return newest[-1].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def provide_postgres(stack: ExitStack, folder: Path) -> None:
    if os.environ.get("BACKENDAI_TEST_POSTGRES_URL"):
        return
    programs = find_postgres()
    if programs is None:
        complain("PostgreSQL is not installed")
        return
    say("starting PostgreSQL")
    data, port, log = folder / "postgres", free_port(), folder / "postgres.log"
    data.mkdir(mode=0o700)
    # PostgreSQL refuses to run as root.
    user = None
    if os.geteuid() == 0:
        names = {entry.pw_name: entry for entry in pwd.getpwall()}
        owner = names.get("postgres") or names["nobody"]
        user = owner.pw_name
        folder.chmod(0o711)
        os.chown(data, owner.pw_uid, owner.pw_gid)
    made = subprocess.run(
        [
            *(programs / "initdb", "--username=backendai", "--auth=trust"),
            *("--no-sync", "--encoding=UTF8", "--locale=C", "-D", data),
        ],
        user=user,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if made.returncode:
        complain(f"initdb failed:\n{made.stdout}")
        return
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": str(data),
        "max_connections": "200",
        # Nothing here has to survive a power cut.
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
    }
    with log.open("wb") as output:
        server = subprocess.Popen(
            [
                programs / "postgres",
                *("-D", data),
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            user=user,
            cwd="/",
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    # SIGINT is PostgreSQL's fast shutdown: it does not wait for clients.
    stack.callback(stop, server, signal.SIGINT)
    ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
    if wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, server):
        url = f"postgresql+psycopg://backendai@127.0.0.1:{port}/postgres"
        os.environ["BACKENDAI_TEST_POSTGRES_URL"] = url
    else:
        complain(f"PostgreSQL did not start:\n{tail(log)}")


def run(argv: list[str]) -> int:
    """Run the tests; an interrupt is theirs first, and the clearing away is ours."""
    process = subprocess.Popen(argv, cwd=ROOT)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: process.send_signal(number))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def main() -> int:
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="backendai-test-"))
        )
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{path}:/usr/sbin:/sbin"
        # The tests start many hundred processes, each of which would compile all again.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        install_packages()
        if provide_docker(stack, folder):
            build_session_image()
        provide_postgres(stack, folder)
        return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
