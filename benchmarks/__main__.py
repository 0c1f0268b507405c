"""Runs the measurements: ``make bench`` for all, ``make bench ARGS=spawn`` for one."""

from __future__ import annotations

import runpy
import sys

ALL = {
    "plan": "benchmarks.plan.run",
    "packing": "benchmarks.packing.run",
    "schedule": "benchmarks.schedule.run",
    "idle": "benchmarks.idle",
    "spawn": "benchmarks.spawn.run",
    "proxy": "benchmarks.proxy.compare",
    "api": "benchmarks.api.run",
    "uploads": "benchmarks.data.http",
    "data": "benchmarks.data.run",
    "usage": "benchmarks.usage",
    "ui": "benchmarks.ui.run",
    "widgets": "benchmarks.ui.widgets",
}

names = [word for word in sys.argv[1:] if not word.startswith("-")]
unknown = [name for name in names if name not in ALL]
if unknown:
    sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
flags = [word for word in sys.argv[1:] if word.startswith("-")]
for name in names or ALL:
    print(f"\n== {name}", flush=True)
    sys.argv = [ALL[name], *flags]
    runpy.run_module(ALL[name], run_name="__main__")
