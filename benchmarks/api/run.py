"""How many requests per second does the API answer, beside JupyterHub's own?

    python -m benchmarks.api.run [--rounds 5] [--seconds 5] [--connections 16]
        [--sessions 100000] [--users 1000] [--hub-database postgresql] [--json FILE]

Four requests take turns in one run: ``GET api/sessions?limit=20`` with a person's
JupyterHub token (a page of their own sessions, which do not change meanwhile, so that
most answers are pages that were kept), the same with a cursor that no other request
has (so that each page is read from the database, as when sessions change all the
time), ``POST api/sessions`` as JupyterHub's spawner sends it when they press *Start*
(no node: they wait), and JupyterHub's ``GET /hub/api/user`` with the same tokens. No
proxy is between. Each server is one process;
where there are two cores or more, both servers stay on the first, and PostgreSQL and
the load generator on the others, so that whose turn it is has a core of its own.

PostgreSQL is the one ``BACKENDAI_TEST_POSTGRES_URL`` names (it cannot be kept off a
core then), or one that is started with its own defaults: then commits wait for the
disk, too.

On a machine that does other things as well, trust the processor time of an answer
("cpu ms", of the one process that is asked) before the answers in a second.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from backendai_hub.core.ids import make_id
from benchmarks.api.fill import ask_for_one, clear_queue, fill, look, meet
from benchmarks.api.servers import (
    Hub,
    database,
    jupyterhub,
    pin,
    postgres,
    processor,
    processor_of_tree,
    settle,
)
from tests.harness import PREFIX, Stack, free_port

READS, WRITES, PEER = "GET api/sessions", "POST api/sessions", "GET /hub/api/user"
ANEW = "… each page anew"
_ANEW_PER_SECOND = 4000
_PER_SECOND = 1500
"""More writes than are ever made in a second: each request is sent once."""


@dataclass
class Bench:
    """What runs, and where."""

    stack: Stack
    hub: Hub
    db_url: str
    postgres_pid: int | None
    tokens: dict[str, str]
    writers: list[str]
    options: argparse.Namespace
    cores: int

    @property
    def service_pid(self) -> int:
        return self.stack.programs["service"].pid

    def spread(self) -> None:
        """Give the servers one core, and everything else the others."""
        if self.cores < 2:
            return
        first, others = {0}, set(range(1, self.cores))
        for pid in (self.service_pid, self.hub.process.pid):
            pin(pid, first)
        if self.postgres_pid is not None:
            pin(self.postgres_pid, others)
        os.sched_setaffinity(0, others)

    def job(self, kind: str) -> dict[str, Any]:
        """Say what the load generator is to ask."""
        options = self.options
        made: dict[str, Any] = {
            "connections": options.connections,
            "seconds": options.seconds,
            "warm": options.warm,
            "status": 201 if kind == WRITES else 200,
            "once": kind in {WRITES, ANEW},
            "port": self.hub.port if kind == PEER else self.stack.port,
        }
        if kind == WRITES:
            made["requests"] = self._writes()
            return made
        count = len(self.tokens)
        path = "/hub/api/user" if kind == PEER else f"{PREFIX}api/sessions?limit=20"
        if kind == ANEW:
            count = int(_ANEW_PER_SECOND * (options.seconds + options.warm))
        tokens = list(self.tokens.values())
        made["requests"] = [
            {
                "method": "GET",
                "path": f"{path}&after={_cursor()}" if kind == ANEW else path,
                "headers": _token(tokens[number % len(tokens)]),
            }
            for number in range(count)
        ]
        return made

    def _writes(self) -> list[dict[str, Any]]:
        token = self.stack.token("spawner")
        count = int(_PER_SECOND * (self.options.seconds + self.options.warm))
        return [self._write(token, n) for n in range(count)]

    def _write(self, token: str, number: int) -> dict[str, Any]:
        name = self.writers[number % len(self.writers)]
        server = secrets.token_hex(6)
        prefix = f"/user/{name}/{server}/"
        body = {
            "image": "jupyterlab",
            "project": "default",
            "slots": {"cpu": "1", "mem": "1g"},
            "attachment": {"user": name, "server": server, "prefix": prefix},
            "environ": {"JUPYTERHUB_API_TOKEN": secrets.token_hex(16)},
        }
        headers = {**_token(token), "X-Backendai-Act-For": name}
        headers["Idempotency-Key"] = secrets.token_hex(16)
        return {
            "method": "POST",
            "path": f"{PREFIX}api/sessions",
            "headers": headers,
            "body": json.dumps(body),
        }

    def turn(self, kind: str) -> dict[str, Any]:
        """Measure one of them, once."""
        settle(self.service_pid)
        settle(self.hub.process.pid)
        before = self._used()
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.api.load"],
            input=json.dumps(self.job(kind)),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        if found["refused"]:
            raise RuntimeError(f"{kind}: {found['refused']} × {found['refusal']}")
        seconds = self.options.seconds + self.options.warm
        for name, used in self._used().items():
            found[name] = round((used - before[name]) / seconds, 3)
        asked = "jupyterhub" if kind == PEER else "service"
        found["cost"] = round(1000 * found[asked] * seconds / found["with_warming"], 3)
        if kind == WRITES:
            found["stored"] = clear_queue(self.db_url)
        return found

    def _used(self) -> dict[str, float]:
        used = {
            "service": processor(self.service_pid),
            "jupyterhub": processor(self.hub.process.pid),
        }
        if self.postgres_pid is not None:
            used["postgresql"] = processor_of_tree(self.postgres_pid)
        return used


def _cursor() -> str:
    """Point before the newest session, as no other cursor does."""
    text = f"2999-01-01T00:00:00.000Z|{make_id(0, os.urandom(10))}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _token(token: str) -> dict[str, str]:
    return {"Authorization": f"token {token}"}


async def check(bench: Bench) -> None:
    """Look at one answer of each kind before anything is counted."""
    name, token = next(iter(bench.tokens.items()))
    async with aiohttp.ClientSession(headers=_token(token)) as session:
        url = f"{bench.stack.url}api/sessions?limit=20"
        async with session.get(url) as answer:
            page = await answer.json()
            assert answer.status == 200, page
            owners = {item["owner"] for item in page["items"]}
            assert (len(page["items"]), owners) == (20, {name}), page
            assert page["next"], "there are more than one page"
        async with session.get(f"{bench.hub.api}/user") as answer:
            assert (await answer.json())["name"] == name


def measure(bench: Bench) -> dict[str, Any]:
    turns: dict[str, list[dict[str, Any]]] = {
        READS: [],
        PEER: [],
        ANEW: [],
        WRITES: [],
    }
    for number in range(bench.options.rounds):
        for kind, so_far in turns.items():
            found = bench.turn(kind)
            so_far.append(found)
            print(
                f"{number + 1}  {kind:20} {found['rate']:8.1f}/s"
                f"   p50 {found['p50']:7.2f} ms   p99 {found['p99']:7.2f} ms",
                flush=True,
            )
    medians = {
        kind: {
            name: round(statistics.median(f[name] for f in found), 3)
            for name, value in found[0].items()
            if isinstance(value, (int, float))
        }
        for kind, found in turns.items()
    }
    reads, peer = medians[READS], medians[PEER]
    return {
        "medians": medians,
        "turns": turns,
        "ratio": round(reads["rate"] / peer["rate"], 2),
        "ratio_by_cost": round(peer["cost"] / reads["cost"], 2),
        "ratio_anew": round(medians[ANEW]["rate"] / peer["rate"], 2),
    }


def report(found: dict[str, Any]) -> None:
    names = ["service", "jupyterhub", "postgresql", "generator"]
    head = f"{'req/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'cpu ms':>8}"
    print(f"\n{'medians':20} {head}   cores used")
    for kind, row in found["medians"].items():
        used = ", ".join(f"{n} {row[n]:.2f}" for n in names if n in row)
        figures = (row[n] for n in ("rate", "p50", "p99", "cost"))
        print(f"{kind:20} {' '.join(f'{f:8.2f}' for f in figures)}   {used}")
    print(
        f"our reads per read of JupyterHub's: {found['ratio']} in a second,"
        f" {found['ratio_by_cost']} for the same processor time;"
        f" {found['ratio_anew']} in a second where each page is read anew"
    )


def prepare(stack_of: ExitStack, options: argparse.Namespace) -> Bench:
    """Start everything and fill the tables."""
    server, postgres_pid = stack_of.enter_context(postgres())
    db_url = stack_of.enter_context(database(server, "service"))
    folder = Path(stack_of.enter_context(tempfile.TemporaryDirectory(prefix="bai-")))
    hub_db = f"sqlite:///{folder}/jupyterhub.sqlite"
    if options.hub_database == "postgresql":
        hub_db = stack_of.enter_context(database(server, "jupyterhub"))
    stack = Stack(folder / "data", db_url)
    stack_of.callback(stack.stop)
    hub_port = free_port({stack.port, stack.agents_port, stack.gateway_port})
    hub = stack_of.enter_context(jupyterhub(folder, stack, hub_db, hub_port))
    names = [f"person-{n:04}" for n in range(options.users)]
    tokens = hub.make_people(names[: options.tokens])
    print(f"filling the tables with {options.sessions:,} sessions …", flush=True)
    asyncio.run(
        stack.start_service(f"--HubService.hub_api_url={hub.api}", *options.service)
    )
    asyncio.run(meet(stack, names))
    pattern = asyncio.run(ask_for_one(stack, names[-1]))
    fill(db_url, pattern, names, options.sessions)
    cores = len(os.sched_getaffinity(0))
    bench = Bench(stack, hub, db_url, postgres_pid, tokens, names, options, cores)
    bench.spread()
    asyncio.run(check(bench))
    return bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--warm", type=float, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=100, help="who asks, in turns")
    parser.add_argument(
        "--hub-database", choices=["postgresql", "sqlite"], default="postgresql"
    )
    parser.add_argument("--service", action="append", default=[], help="its settings")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack_of:
        bench = prepare(stack_of, options)
        found = measure(bench)
        found |= {
            "tables": look(bench.db_url),
            "hub_database": options.hub_database,
            "connections": options.connections,
            "processes": {"service": 1, "jupyterhub": 1},
            "cores": bench.cores,
            "pinned": bench.cores >= 2,
        }
    report(found)
    print(json.dumps({k: found[k] for k in ("tables", "hub_database", "pinned")}))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
