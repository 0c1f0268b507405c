"""How well placement fills a cluster, and how long people wait for it.

    python -m benchmarks packing [--quick]
    python -m benchmarks.packing.run [--seeds 3] [--scale 0.5] [--jobs 3000]

Four parts: how much of 1,200 nodes (or a part of them, as ``--scale`` says) each
policy can give away, on six workloads; how long people wait on three small clusters,
under each rule of the queue and for the scheduler itself; how many placements per
second the default policy makes inside the scheduler's own loop; and what one whole pass
gives away. Ratios are to others in the same run. ``--held-out`` takes ten other
workloads instead of the six, and ``--drawn 60 96`` those that are drawn from these
numbers, for which the default policy is compared with two others only. Of many seeds,
``--only fgd`` tells how much more is given away than by FGD, and ``--only easy`` how
much longer people wait than under EASY, both with their standard errors. With
``--populations 300 324`` the former makes up other requests of the same kind for each
workload, from each of these numbers, instead of drawing the same ones with other seeds.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Sequence

import numpy as np

from backendai_hub.scheduling.fragmentation import Fragmentation
from backendai_hub.scheduling.placing import Placer
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.shapes import Shapes
from backendai_hub.scheduling.snapshot import GroupPolicy, Snapshot
from backendai_hub.scheduling.warming import warm_up
from benchmarks.packing import simulated
from benchmarks.packing.drawn import draw_workload
from benchmarks.packing.held_out import HELD_OUT
from benchmarks.packing.ours import (
    build_cluster,
    make_node,
    make_sessions,
    make_typical,
    shuffled,
)
from benchmarks.packing.replay import SITES, Waits, measure
from benchmarks.packing.saturation import POLICIES, saturate
from benchmarks.packing.workloads import ALL, Workload

EASY = ("easy", "best-fit")
QUEUES = (
    ("strict", "best-fit"),
    ("skip", "best-fit"),
    ("skip", "fgd"),
    EASY,
    ("easy", "fgd"),
)


_AS_MUCH = 0.1
"""Points by which two differ at least if one is to count as more."""
PARTS = ("saturation", "fgd", "waits", "easy", "speed", "plan")


def print_row(cells: Sequence[object]) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def print_saturation(
    seeds: Sequence[int], scale: float, workloads: Sequence[Workload]
) -> None:
    print("\nGPUs given away when 100 % / 130 % have been asked for, percent\n")
    print_row(["Workload", *POLICIES, "unallocated, ours to fgd"])
    print_row(["---"] * (len(POLICIES) + 2))
    for workload in workloads:
        means = {
            policy: np.mean(
                [saturate(workload, policy, seed, scale=scale) for seed in seeds], 0
            )
            for policy in POLICIES
        }
        ratio = (100 - means["ours"]) / (100 - means["fgd"])
        cells = [f"{a:.1f} / {b:.1f}" for a, b in means.values()]
        print_row([workload.name, *cells, f"{ratio[0]:.2f} / {ratio[1]:.2f}"])


def print_more(
    seeds: Sequence[int], scale: float, populations: Sequence[int] = ()
) -> None:
    """Say how much more the default policy gives away than FGD, one by one."""
    print("\nPoints more than FGD when 100 % and 130 % have been asked for\n")
    print_row(["Workload", "100 %", "130 %", "Least", "Less", "More"])
    print_row(["---"] * 6)
    for workload in (*ALL, *HELD_OUT):
        made = [workload.of(population) for population in populations] or [workload]
        ours, fgd = (
            [saturate(one, policy, s, scale=scale) for one in made for s in seeds]
            for policy in ("ours", "fgd")
        )
        more = np.array(ours) - np.array(fgd)
        counts = [
            " / ".join(str(n) for n in (sign * more > _AS_MUCH).sum(0))
            for sign in (-1, 1)
        ]
        least = " / ".join(f"{points:+.2f}" for points in more.min(0))
        means = [tell_mean(list(column), 2) for column in more.T]
        print_row([workload.name, *means, least, *counts])


def print_waits(
    seeds: Sequence[int], jobs: int, queues: Sequence[tuple[str, str]]
) -> None:
    print("\nWaits in minutes: mean, 95 %, wide requests' mean, worst")
    print("and the difference of means to easy with best-fit, seed by seed\n")
    heads = ["Cluster", "Queue", "Placement", "Mean", "95 %", "Wide", "Worst"]
    print_row([*heads, "Mean, difference", "Wide, difference"])
    print_row(["---"] * 9)
    for site in SITES:
        found = {
            (rule, policy): [
                measure(site, rule=rule, policy=policy, jobs=jobs, seed=seed)
                for seed in seeds
            ]
            for rule, policy in queues
        }
        found["the scheduler", "ours"] = [
            simulated.measure(site, jobs=jobs, seed=seed) for seed in seeds
        ]
        for (rule, policy), waits in found.items():
            means = [
                f"{statistics.mean(getattr(w, name) for w in waits):,.1f}"
                for name in ("mean", "p95", "wide", "worst")
            ]
            apart = [
                tell_difference(waits, found[EASY], name) for name in ("mean", "wide")
            ]
            print_row([site.name, rule, policy, *means, *apart])


def print_drawn(numbers: Sequence[int], seeds: Sequence[int], scale: float) -> None:
    print("\nGPUs given away when 100 % / 130 % have been asked for, percent\n")
    policies = ("best-fit", "fgd", "ours")
    print_row(["Workload", *policies, "ours less fgd"])
    print_row(["---"] * (len(policies) + 2))
    for number in numbers:
        workload = draw_workload(number)
        means = [
            np.mean([saturate(workload, policy, s, scale=scale) for s in seeds], 0)
            for policy in policies
        ]
        more = means[2] - means[1]
        cells = [f"{a:.1f} / {b:.1f}" for a, b in means]
        print_row([workload.name, *cells, f"{more[0]:+.1f} / {more[1]:+.1f}"])


def tell_difference(waits: Sequence[Waits], others: Sequence[Waits], name: str) -> str:
    """Say by how much *waits* are longer than *others*, with the standard error."""
    apart = [
        getattr(one, name) - getattr(other, name)
        for one, other in zip(waits, others, strict=True)
    ]
    return tell_mean(apart, 1)


def tell_mean(apart: Sequence[float], digits: int) -> str:
    """Say what differences are on average, with the standard error."""
    error = statistics.stdev(apart) / len(apart) ** 0.5 if len(apart) > 1 else 0.0
    return f"{statistics.mean(apart):+,.{digits}f} ± {error:,.{digits}f}"


def print_speed() -> None:
    print("\nPlacements until 1,200 nodes are full, in processor time of one core\n")
    print_row(["Workload", "Shapes", "Placements/s", "Median µs", "99 % µs", "Most µs"])
    print_row(["---"] * 6)
    # As the service does when it starts.
    warm_up()
    gc.freeze()
    for workload in ALL:
        stream = workload.draw(0)
        cluster = build_cluster(shuffled(workload.nodes(), 0))
        typical = make_typical(cluster.slots, workload.draw(10_000))
        placer = Placer(cluster, Fragmentation().scorer(cluster, typical))
        shapes = Shapes(cluster)
        # A shape's fixed part is worked out once for the whole queue, before.
        queue = [
            (shapes.of(session), session.owner_id) for session in make_sessions(stream)
        ]
        taken: list[float] = []
        for shape, owner in queue:
            begin = time.thread_time()
            row = placer.find(shape, owner)
            if row >= 0:
                placer.take(shape, row)
                taken.append(time.thread_time() - begin)
        micros = np.array(taken) * 1e6
        print_row(
            [
                workload.name,
                len(set(stream)),
                f"{len(taken) / sum(taken):,.0f}",
                f"{np.median(micros):.0f}",
                f"{np.percentile(micros, 99):.0f}",
                f"{micros.max():.0f}",
            ]
        )


def print_plans(scale: float) -> None:
    print("\nOne pass of plan() over the whole stream: GPUs given away, percent\n")
    print_row(["Workload", "concentrated", "fragmentation", "Placements/s"])
    print_row(["---"] * 4)
    for workload in ALL:
        stream = workload.draw(0, scale)
        kinds = shuffled(workload.nodes(scale), 0)
        capacity = 1000 * sum(kind.devices for kind in kinds)
        nodes = tuple(make_node(number, kind) for number, kind in enumerate(kinds))
        queue = tuple(make_sessions(stream))
        cells: list[object] = [workload.name]
        for placement in ("concentrated", "fragmentation"):
            policy = GroupPolicy(placement=placement, reserve_after=None)
            snapshot = Snapshot(
                nodes=nodes, queue=queue, scopes={}, groups={"": policy}
            )
            begin = time.thread_time()
            placed = plan(snapshot).placements
            took = time.thread_time() - begin
            given = sum(stream[int(p.session)].milli for p in placed)
            cells.append(f"{100 * given / capacity:.1f}")
        print_row([*cells, f"{len(placed) / took:,.0f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--populations", type=int, nargs=2, metavar=("FROM", "TO"))
    parser.add_argument("--drawn", type=int, nargs=2, metavar=("FROM", "TO"))
    options = parser.parse_args()
    if options.populations and options.only != "fgd":
        parser.error("--populations goes with --only fgd")
    if options.populations and not range(*options.populations):
        parser.error("--populations needs a number, and a larger one")
    seeds = range(1 if options.quick else options.seeds)
    if options.drawn:
        print_drawn(range(*options.drawn), seeds, options.scale)
        return
    if options.only in {None, "saturation"}:
        scale = 0.25 if options.quick else options.scale
        print_saturation(seeds, scale, HELD_OUT if options.held_out else ALL)
    if options.only == "fgd":
        print_more(seeds, options.scale, range(*(options.populations or (0, 0))))
    if options.only in {None, "waits", "easy"}:
        queues = (EASY,) if options.only == "easy" else QUEUES
        print_waits(seeds, 1000 if options.quick else options.jobs, queues)
    if options.only in {None, "speed"}:
        print_speed()
    if options.only in {None, "plan"}:
        print_plans(0.25 if options.quick else options.scale)


if __name__ == "__main__":
    main()
