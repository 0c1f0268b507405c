"""What the platform costs when nothing happens, and how soon people can log in.

    python -m benchmarks.idle [--rounds 5] [--json FILE]

Memory is each process's proportional share (PSS) and resident set (RSS) twenty
seconds after the start; processor time is what it then uses in ten more. "Login" is
from the command ``backendai up`` to the first 200 of ``/hub/login``, with a data
directory that has been used before ("again") and with a new one ("first").
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import requests

from tests.e2e.up import Platform

PROCESSES = ("supervisor", "router", "hub", "service", "agent")


def memory(pid: int) -> dict[str, float]:
    """RSS and PSS of one process in MiB."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in {"Rss", "Pss"}:
            found[name.lower()] = round(int(rest.split()[0]) / 1024, 1)
    return found


def processor(pid: int) -> float:
    """Seconds of processor time one process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def login_seconds(platform: Platform) -> float:
    """Bring the platform up and wait for the login page."""
    began = time.monotonic()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "backendai_hub.cli",
            "up",
            "--detach",
            "--json",
            f"--data-dir={platform.folder.root}",
            f"--port={platform.port}",
            "--runtime=process",
        ],
        stdout=subprocess.DEVNULL,
    )
    while True:
        try:
            answer = requests.get(f"{platform.url}hub/login", timeout=5)
            if answer.status_code == 200:
                break
        except requests.RequestException:
            pass
        if time.monotonic() - began > 60:
            raise TimeoutError("no login page")
        time.sleep(0.01)
    seconds = time.monotonic() - began
    process.wait(60)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    first, again = [], []
    found: dict[str, object] = {}
    for number in range(given.rounds):
        folder = Path(tempfile.mkdtemp(prefix="bai-"))
        platform = Platform(folder / "data", "process")
        try:
            first.append(login_seconds(platform))
            platform.down()
            again.append(login_seconds(platform))
            if number == 0:
                time.sleep(20)
                pids = {name: platform.pid(name) or 0 for name in PROCESSES}
                before = {name: processor(pid) for name, pid in pids.items()}
                time.sleep(10)
                for name, pid in pids.items():
                    used = (processor(pid) - before[name]) / 10
                    found[name] = {**memory(pid), "cpu": round(used, 4)}
        finally:
            platform.down()
            shutil.rmtree(folder, ignore_errors=True)
    found["login first"] = round(statistics.median(first), 2)
    found["login again"] = round(statistics.median(again), 2)
    for name, value in found.items():
        print(f"{name:12} {value}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
