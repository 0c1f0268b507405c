"""How a placement policy says which node is best: lower scores are better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from backendai_hub.scheduling.cluster import Cluster

IntVector = NDArray[np.int64]
FloatVector = NDArray[np.float64]


class Demand(NamedTuple):
    """What one container asks for, in the order of the cluster's columns."""

    amounts: tuple[int, ...]
    column: int = -1
    """The column of the accelerator it asks for, or -1."""
    milli: int = 0
    """How much of it: below 1000 a fraction, otherwise whole devices."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that its nodes must have."""


class Scorer(Protocol):
    """Scores the nodes of one cluster during one pass.

    A scorer may also have ``pick(scores) -> int``, which chooses the row (otherwise
    the first of those with the least score is taken; nodes without room have
    infinity), and ``anywhere = True``, which says that its scores make sense for
    nodes without room too: then it is asked about more rows, and less often.
    """

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        """Return a finite score for each of *rows*, all of which have room.

        It must depend on nothing but the demand and the state of each row: it is
        asked again only about rows that have changed.
        """
        ...

    def choose_device(self, demand: Demand, row: int, fitting: Sequence[int]) -> int:
        """Return which of the *fitting* accelerators of a node gives a fraction.

        They are the positions of devices in ``cluster.left[row]``.
        """
        ...


class PlacementPolicy(Protocol):
    """A plugin of the entry point group ``backendai_hub.placements``."""

    name: str

    def scorer(
        self, cluster: Cluster, typical: Sequence[tuple[Demand, float]]
    ) -> Scorer:
        """Return what scores *cluster*'s nodes; *typical* is what people ask for."""
        ...
