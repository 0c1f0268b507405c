"""How soon a click in a notebook is seen while another cell runs.

    python -m benchmarks.ui.widgets [--clicks 5]

A real kernel, a real service with a node of the ``fake`` runtime. From the moment at
which the click is sent to the kernel until its panel shows the session as stopping.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.admin import make_administrator
from tests.harness import ROOT, running_stack


async def measure(clicks: int) -> list[float]:
    """Click so many times, each in a kernel of its own; return milliseconds."""
    with tempfile.TemporaryDirectory(prefix="bench-widgets-") as folder:
        async with running_stack(Path(folder) / "data") as stack:
            key = await make_administrator(stack)
            environ = {
                **os.environ,
                "PYTHONPATH": f"{ROOT}:{ROOT / 'labextension'}:{ROOT / 'agent'}",
                "BACKENDAI_ENDPOINT": stack.url,
                "BACKENDAI_ACCESS_KEY": key.name,
                "BACKENDAI_SECRET_KEY": key.secret,
                "BACKENDAI_WIDGETS": "1",
            }
            return [await asyncio.to_thread(_click, environ) for _ in range(clicks)]


def _click(environ: dict[str, str]) -> float:
    program = ROOT / "tests" / "kernel_click.py"
    done = subprocess.run(
        [sys.executable, str(program)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return float(done.stdout.split("after ")[1].split(" ms")[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clicks", type=int, default=5)
    found = asyncio.run(measure(parser.parse_args().clicks))
    print(f"a click is shown after {statistics.median(found):.0f} ms (median)")
    print(f"at most {max(found):.0f} ms, of {len(found)}; it should be at most 500 ms")


if __name__ == "__main__":
    main()
