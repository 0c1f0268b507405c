"""How much slower a pass is with guarantees and maxima than without.

    python -m benchmarks.plan.guaranteed [--agents 1000] [--turns 10]

The same queue twice, in turns: once as :mod:`.run` has it, once with the domain and
each of its projects guaranteed half of their part, and limited to twice of it. Times
are of the processor, the least of all turns, without building the arrays.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from msgspec.structs import replace

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.plan import Pass
from backendai_hub.scheduling.snapshot import ScopeQuota, Snapshot
from benchmarks.plan.snapshots import CORES, GPUS, PROJECTS, make_snapshot


def guarantee(snapshot: Snapshot) -> Snapshot:
    """Return the same with a quota for the domain and for each project."""
    gpus = len(snapshot.nodes) * GPUS * MILLI
    cores = len(snapshot.nodes) * CORES * MILLI
    part = ScopeQuota(
        guaranteed={
            "cuda.device": gpus // PROJECTS // 2,
            "cpu": cores // PROJECTS // 2,
        },
        maximum={"cuda.device": gpus // PROJECTS * 2},
    )
    quotas = {("default", f"project-{number}"): part for number in range(PROJECTS)}
    whole = ScopeQuota(
        guaranteed={"cuda.device": gpus // 2}, maximum={"cuda.device": gpus * 2}
    )
    policy = replace(snapshot.groups[""], quotas={("default",): whole, **quotas})
    return replace(snapshot, groups={"": policy})


def measure(agents: int, turns: int) -> dict[str, Any]:
    plain = make_snapshot(agents, agents * 4, 100)
    snapshots = {"plain": plain, "guaranteed": guarantee(plain)}
    least: dict[str, float] = {}
    for _ in range(turns):
        for name, snapshot in snapshots.items():
            begun = Pass(snapshot)
            began = time.thread_time()
            placed = len(begun.run().placements)
            each = (time.thread_time() - began) / placed
            least[name] = min(each, least.get(name, each))
    row = {
        "agents": agents,
        **{f"{name}_per_second": round(1 / each) for name, each in least.items()},
        "ratio": round(least["plain"] / least["guaranteed"], 2),
    }
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args()
    measure(options.agents, options.turns)


if __name__ == "__main__":
    main()
