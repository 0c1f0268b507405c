"""How long people wait for the scheduler itself: its order, places and reservations.

The jobs of a site go through the product's own simulation, pass by pass, with the
settings that a resource group has when nobody has changed any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from backendai_hub.scheduling.scenario import Arrival, Scenario
from backendai_hub.scheduling.simulate import simulate
from backendai_hub.scheduling.snapshot import GroupPolicy, PendingSession
from benchmarks.packing.ours import LABEL, make_node, make_request, shuffled
from benchmarks.packing.replay import Job, Site, Waits, summarise
from benchmarks.packing.workloads import Shape

USUAL: Final = GroupPolicy(placement="fragmentation")


def make_scenario(site: Site, jobs: Sequence[Job], policy: GroupPolicy) -> Scenario:
    """Write a site and its jobs as a simulation reads them; times are whole seconds."""
    kinds = shuffled([kind for kind in site.kinds for _ in range(kind.count)], 0)
    requests = {shape: make_request(shape) for shape in {job.shape for job in jobs}}
    return Scenario(
        begins=0,
        nodes=tuple(make_node(number, kind) for number, kind in enumerate(kinds)),
        arrivals=tuple(
            Arrival(
                at=round(job.arrives),
                run_time=max(1, round(job.runs)),
                session=PendingSession(
                    id=str(number),
                    owner_id="user",
                    request=requests[job.shape],
                    references={"docker": "jupyterlab"},
                    architecture="x86_64",
                    scopes=(),
                    since=round(job.arrives),
                    lifetime=max(1, math.ceil(job.says)),
                    labels=_labels(job.shape),
                ),
            )
            for number, job in enumerate(jobs)
        ),
        groups={"": policy},
    )


def _labels(shape: Shape) -> dict[str, str]:
    return {LABEL: str(*shape.models)} if shape.models else {}


def measure(site: Site, *, jobs: int, seed: int, policy: GroupPolicy = USUAL) -> Waits:
    """Simulate *jobs* requests and say how long they waited."""
    stream = site.draw(seed, jobs)
    outcome = simulate(make_scenario(site, stream, policy))
    waits = np.zeros(jobs)
    for wait in outcome.waits:
        # Everybody fits somewhere and everybody ends: who never starts is a fault.
        if wait.seconds is None:
            raise RuntimeError(f"session {wait.session} never started: {wait.reason}")
        waits[int(wait.session)] = wait.seconds
    return summarise(waits / 60, stream)
