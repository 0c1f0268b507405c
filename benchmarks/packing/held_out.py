"""Workloads that were written after the policy: unlike the six, and each other.

They are there to catch it being good at one generator only: other populations of
shapes, other machines, other habits. They have been looked at since.
"""

from __future__ import annotations

from benchmarks.packing.workloads import (
    ACCELERATED,
    DEFAULT,
    LEAN,
    MIXED,
    Mix,
    NodeKind,
    Workload,
)

BROAD = (
    NodeKind(200, 16, 0, 192, 1536),
    NodeKind(300, 8, 1, 96, 768),
    NodeKind(500, 4, 2, 48, 192),
    NodeKind(200, 0, -1, 96, 384),
)
"""1,200 nodes, some of 16 GPUs."""

ALIKE = (NodeKind(1200, 8, 0, 96, 768),)
"""1,200 nodes of one make."""

HELD_OUT = (
    Workload(
        "bimodal",
        Mix({0: 0.1, 0.5: 0.85, 8: 0.05}, parts=(100, 125)),
        population=11,
        about="crumbs, and whole nodes",
    ),
    Workload(
        "thirds",
        Mix({0: 0.1, 0.5: 0.8, 1: 0.1}, parts=(300, 700)),
        population=12,
        about="three and seven tenths of a GPU",
    ),
    Workload(
        "odd-parts",
        Mix({0: 0.1, 0.5: 0.7, 1: 0.2}, parts=(170, 230, 290, 370, 430, 530, 610, 770)),
        kinds=ALIKE,
        population=13,
        about="parts that seldom add up to one",
    ),
    Workload(
        "hungry",
        Mix(DEFAULT, cores_per_gpu=(10, 12, 16, 20, 24)),
        population=14,
        about="more cores for a GPU than most nodes have",
    ),
    Workload(
        "sixteen",
        Mix({0: 0.1, 0.5: 0.2, 1: 0.5, 2: 0.05, 4: 0.05, 8: 0.06, 16: 0.04}),
        kinds=BROAD,
        population=15,
        about="nodes of 16 GPUs, and requests for all of them",
    ),
    Workload(
        "named",
        Mix(DEFAULT, constrained=0.6),
        population=16,
        about="three of five name a model",
    ),
    Workload(
        "bursts",
        Mix({0: 0.133, 0.5: 0.378, 1: 0.44, 2: 0.03, 4: 0.01, 8: 0.01}),
        population=17,
        burst=24.0,
        about="two dozen alike, one after the other",
    ),
    Workload(
        "rich-plain",
        Mix({**DEFAULT, 0: 0.3}, cores_alone=(16, 32, 48, 64)),
        kinds=ACCELERATED,
        population=18,
        about="big plain jobs beside GPUs",
    ),
    Workload(
        "pairs",
        Mix({0: 0.1, 0.5: 0.2, 1: 0.3, 2: 0.3, 4: 0.1}),
        kinds=LEAN,
        population=19,
        about="two and four GPUs where cores are short",
    ),
    Workload(
        "another",
        Mix(DEFAULT, constrained=0.15),
        kinds=MIXED,
        population=20,
        about="the first of the six, drawn from another population",
    ),
)
