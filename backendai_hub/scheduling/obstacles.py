"""Why nodes can never run a session, whatever room they have: for all nodes at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backendai_hub.core.vfolders import HOST_LABEL
from backendai_hub.scheduling.snapshot import NodeState, PendingSession

Vector = NDArray[np.int64]
Mask = NDArray[np.bool_]


class _Property:
    """What each node is in one respect, as a number for each different value."""

    def __init__(self, values: Sequence[str | None]) -> None:
        self.known = {value: i for i, value in enumerate(dict.fromkeys(values))}
        numbers = map(self.known.__getitem__, values)
        self._numbers: Vector = np.fromiter(numbers, np.int64, len(values))

    def equals(self, value: str | None) -> Mask:
        """Tell which nodes are like that."""
        mask: Mask = self._numbers == self.known.get(value, -1)
        return mask


class Obstacles:
    """What nodes are, compared with what sessions insist on."""

    def __init__(self, nodes: Sequence[NodeState], row: Mapping[str, int]) -> None:
        self._nodes, self._row = nodes, row
        self._groups = _Property([node.group for node in nodes])
        self._runtimes = _Property([node.runtime for node in nodes])
        self._architectures = _Property([n.architecture for n in nodes])
        self._protocols: Vector = np.array([n.protocol for n in nodes], np.int64)
        self._labels: dict[str, _Property] = {}

    def find(self, session: PendingSession) -> tuple[Vector, list[str]]:
        """Tell what is in the way on each node: an index into words; "" is 0."""
        numbers = np.zeros(len(self._nodes), np.int64)
        words = [""]
        # What comes first is told, so it is written last.
        for mask, word in reversed(list(self._compare(session))):
            numbers[mask] = len(words)
            words.append(word)
        return numbers, words

    def _compare(self, session: PendingSession) -> Iterator[tuple[Mask, str]]:
        """Yield which nodes are not as they should be, and in what."""
        if session.group:
            yield ~self._groups.equals(session.group), "is in another resource group"
        for runtime in self._runtimes.known:
            if runtime not in session.references:
                yield self._runtimes.equals(runtime), "cannot run this image"
        wanted = session.architecture
        for architecture in self._architectures.known:
            if architecture != wanted:
                mask = self._architectures.equals(architecture)
                yield mask, f"is {architecture}, not {wanted}"
        if session.nodes and session.only_nodes:
            others = np.ones(len(self._nodes), bool)
            others[[self._row[n] for n in session.nodes if n in self._row]] = False
            yield others, "is not one of the nodes it names"
        yield (
            self._protocols < session.protocol,
            "runs an agent that is too old for this; upgrade it",
        )
        for label, value in session.labels.items():
            yield ~self.read_label(label).equals(value), _lacks(label, value)

    def read_label(self, label: str) -> _Property:
        """Return which nodes have which value of *label*, or none."""
        known = self._labels.get(label)
        if known is None:
            values = [node.labels.get(label) for node in self._nodes]
            known = self._labels[label] = _Property(values)
        return known


def _lacks(label: str, value: str) -> str:
    """Say what a node is not; those of storage hosts are labels of the platform's."""
    if label.startswith(HOST_LABEL):
        return f"is without the storage host {label.removeprefix(HOST_LABEL)}"
    return f"is not labelled {label}={value}"
