"""Options that say how many containers a session has, and how they lie."""

from __future__ import annotations

from typing import Any, Final

import click

from backendai_hub.core.clusters import ClusterMode, ClusterStrategy

CLUSTER_OPTIONS: Final = (
    click.Option(
        ["--cluster-size"],
        type=int,
        help="How many containers, each with these resources; they start together.",
    ),
    click.Option(
        ["--cluster-mode"],
        type=click.Choice([str(mode) for mode in ClusterMode]),
        help="All on one node, or on several if need be; single-node, unless said.",
    ),
    click.Option(
        ["--cluster-strategy"],
        type=click.Choice([str(strategy) for strategy in ClusterStrategy]),
        help="Of a multi-node cluster: on as few nodes as possible, or as many.",
    ),
)


def read_cluster(fields: dict[str, Any]) -> dict[str, Any]:
    """Make of what these options say what a request says."""
    made = dict(fields)
    if "cluster_mode" in made:
        made["cluster_mode"] = ClusterMode(made["cluster_mode"])
    if "cluster_strategy" in made:
        made["cluster_strategy"] = ClusterStrategy(made["cluster_strategy"])
    return made
