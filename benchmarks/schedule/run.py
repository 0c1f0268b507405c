"""How long from *Start* to a node, and how many at once?

    python -m benchmarks.schedule.run [--quiet 100] [--burst 1000] [--connections 16]
        [--users 20] [--crowd 0] [--json FILE]

One real service on PostgreSQL with one node that has room for everybody. The node's
agent is stopped once it has joined, so that nothing but the service works.

- *Quiet*: one person after the other asks for a session. The time goes from sending the
  request to the moment at which another connection to the database sees it SCHEDULED,
  so that the answer, the commit of the placement and the looking are all in it.
- *Burst*: many ask at once over several connections; how many are answered in a second,
  what an answer costs the service in processor time, how long each waits for its place
  from the beginning of its request's transaction, and how long until all of them are
  placed.

With a *crowd*, so many sessions wait all the while, before everybody else, for a quota
that leaves them nothing. Then what the API answers meanwhile is measured as well, and
how long after its start the service places the first, and has told everybody why they
wait.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from backendai_hub.core.sessions import WAITING_WORDS, SessionStatus
from benchmarks.api.servers import database, postgres, processor
from benchmarks.schedule.crowd import fill
from tests.harness import API, Stack

SETTINGS = (
    '--HubService.images=[{"name": "tiny", "references": {"fake": "fake"},'
    ' "minimum": {"cpu": "0.001", "mem": "1m"}, "shmem": "0"}]',
    "--HubService.suspect_seconds=3600",
    "--HubService.lost_seconds=7200",
    "--HubService.max_live_sessions=1000000",
)
_LATEST = 300.0


class Watch:
    """Another connection, which sees what has been committed and nothing else."""

    def __init__(self, url: str) -> None:
        self._url = url.replace("postgresql+psycopg", "postgresql")

    async def __aenter__(self) -> Watch:
        self._connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def count_placed(self) -> int:
        cursor = await self._connection.execute(
            "SELECT count(*) FROM sessions WHERE scheduled_at IS NOT NULL"
        )
        row = await cursor.fetchone()
        return 0 if row is None else int(row[0])

    async def newest(self) -> str:
        """Return the id of the newest session."""
        cursor = await self._connection.execute(
            "SELECT id FROM sessions ORDER BY created_at DESC, id DESC LIMIT 1"
        )
        row = await cursor.fetchone()
        return "" if row is None else str(row[0])

    async def waits(self, newest: int) -> list[float]:
        """Return how long so many of the newest waited for their place, in seconds."""
        cursor = await self._connection.execute(
            "SELECT extract(epoch FROM scheduled_at - created_at) FROM sessions"
            " ORDER BY created_at DESC, id DESC LIMIT %s",
            (newest,),
        )
        return [float(row[0]) for row in await cursor.fetchall()]

    async def until_told(self) -> float:
        """Return the moment at which everybody knows why they wait."""
        while True:
            cursor = await self._connection.execute(
                "SELECT count(*) FROM sessions"
                " WHERE status = 'PENDING' AND reason = %s",
                (WAITING_WORDS[SessionStatus.PENDING],),
            )
            row = await cursor.fetchone()
            if row is not None and not row[0]:
                return time.perf_counter()
            await asyncio.sleep(0.5)

    async def until(self, placed: int, pause: float = 0.001) -> float:
        """Return the moment at which so many have been placed."""
        deadline = time.perf_counter() + _LATEST
        while await self.count_placed() < placed:
            if time.perf_counter() > deadline:
                raise RuntimeError(f"not {placed} placed within {_LATEST:g} s")
            await asyncio.sleep(pause)
        return time.perf_counter()


async def ask(api: API, user: str, number: int) -> float:
    """Ask as the spawner does; return how long the answer took."""
    began = time.perf_counter()
    status, body = await api.create(
        image="tiny",
        slots={"cpu": "0.001", "mem": "1m"},
        attachment={
            "user": user,
            "server": f"s{number}",
            "prefix": f"/user/{user}/s{number}/",
        },
        environ={"JUPYTERHUB_API_TOKEN": f"born-{number}"},
    )
    if status != 201:
        raise RuntimeError(f"{status}: {body}")
    return time.perf_counter() - began


async def measure_quiet(
    apis: list[tuple[str, API]], watch: Watch, count: int
) -> list[float]:
    """One after the other, each with a quiet site before it."""
    took = []
    known = await watch.count_placed()
    for number in range(count):
        user, api = apis[number % len(apis)]
        began = time.perf_counter()
        await ask(api, user, known + number)
        took.append(await watch.until(known + number + 1) - began)
        await asyncio.sleep(0.2)
    return took


async def measure_burst(
    apis: list[tuple[str, API]], watch: Watch, pid: int, options: argparse.Namespace
) -> dict[str, Any]:
    """All of them at once."""
    numbers = iter(range(100_000, 100_000 + options.burst))
    known = await watch.count_placed()
    answers: list[float] = []

    async def work() -> None:
        for number in numbers:
            user, api = apis[number % len(apis)]
            answers.append(await ask(api, user, number))

    used, began = processor(pid), time.perf_counter()
    placed = asyncio.create_task(watch.until(known + options.burst, 0.05))
    await asyncio.gather(*(work() for _ in range(options.connections)))
    answered = time.perf_counter() - began
    cpu = processor(pid) - used
    done = await placed
    return {
        "answers_per_second": round(options.burst / answered, 1),
        "answer_ms": quantiles(answers),
        "service_cpu_ms": round(1000 * cpu / options.burst, 2),
        "all_placed_after_s": round(done - began, 2),
        "submit_to_scheduled_ms": quantiles(await watch.waits(options.burst)),
        "last_answer_after_s": round(answered, 2),
    }


async def gather_crowd(
    stack: Stack, by: tuple[str, API], url: str, watch: Watch, crowd: int
) -> dict[str, Any]:
    """Let many wait, and start the service anew; return how long it takes to settle."""
    user, api = by
    known = await watch.count_placed()
    await ask(api, user, 0)
    await watch.until(known + 1)
    pattern = await watch.newest()
    stack.programs["service"].stop()
    await asyncio.to_thread(fill, url, pattern, crowd)
    await stack.start_service(*SETTINGS)
    began = time.perf_counter()
    await ask(api, user, 1)
    done = await watch.until(known + 2)
    told = await watch.until_told()
    return {
        "first_placed_s": round(done - began, 2),
        "all_told_s": round(told - began, 2),
    }


async def measure_answers(api: API, count: int = 200) -> list[float]:
    """Ask for one's own sessions, which the service answers beside all else."""
    took = []
    for _ in range(count):
        began = time.perf_counter()
        await api.get("api/sessions?limit=20")
        took.append(time.perf_counter() - began)
        await asyncio.sleep(0.02)
    return took


def quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{round(100 * q)}": round(1000 * ordered[int(q * (len(ordered) - 1))], 1)
        for q in (0.5, 0.9, 0.99)
    }


async def run(folder: Path, url: str, options: argparse.Namespace) -> dict[str, Any]:
    stack = Stack(folder, url)
    users = [f"user-{n}" for n in range(options.users)]
    apis = [(user, stack.client(user)) for user in users]
    found: dict[str, Any] = {"crowd": options.crowd}
    try:
        await stack.start_service(*SETTINGS)
        await stack.start_agent()
        stack.programs["agent"].stop()
        for _, api in apis:
            await api.__aenter__()
            await api.get("api/me")
        async with Watch(url) as watch:
            if options.crowd:
                found |= await gather_crowd(stack, apis[0], url, watch, options.crowd)
            await measure_quiet(apis, watch, 10)  # to warm up
            pid = stack.programs["service"].pid
            used = processor(pid)
            quiet = await measure_quiet(apis, watch, options.quiet)
            found["submit_to_scheduled_ms"] = quantiles(quiet)
            used = processor(pid) - used
            found["service_cpu_ms"] = round(1000 * used / options.quiet, 1)
            if options.crowd:
                found["answer_ms"] = quantiles(await measure_answers(apis[0][1]))
            if options.burst:
                found["burst"] = await measure_burst(apis, watch, pid, options)
        return found
    finally:
        for _, api in apis:
            await api.__aexit__()
        stack.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quiet", type=int, default=100)
    parser.add_argument("--burst", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--crowd", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with (
        postgres() as (server, _),
        database(server, "schedule") as url,
        tempfile.TemporaryDirectory(prefix="backendai-") as folder,
    ):
        found = asyncio.run(run(Path(folder), url, options))
    print(json.dumps(found, indent=2))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
