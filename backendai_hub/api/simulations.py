"""Questions about what would be, and their answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from backendai_hub.core.simulation import Figures

_MOST_SECONDS = 10_000_000_000
Seconds = Annotated[int, msgspec.Meta(ge=0, le=_MOST_SECONDS)]


class AddedRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Something that somebody might ask for, and for how long."""

    slots: dict[str, Any]
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    project: str = "default"
    owner: str = "somebody"
    resource_group: str | None = None
    run_time: Seconds = 3600
    submit: Seconds = 0


class SimulationRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What to simulate, and what would be different.

    Without a ``trace`` (JSON lines or CSV) it begins with how things are. Those who
    say nothing of how long they run are taken to run ``usual_run_time`` seconds.
    ``weights`` are of domains, projects and users, by name.
    """

    trace: str | None = None
    drain: list[str] = []
    add: Annotated[list[AddedRequest], msgspec.Meta(max_length=100)] = []
    sequencer: str | None = None
    placement: str | None = None
    weights: dict[str, Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]] = {}
    usual_run_time: Annotated[int, msgspec.Meta(ge=1, le=_MOST_SECONDS)] = 14_400


class AddedWait(msgspec.Struct, frozen=True, kw_only=True):
    """When what was added started; without ``seconds`` it never did, for a reason."""

    request: str
    seconds: int | None
    reason: str = ""


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """How things go as they are (``before``) and with what is different (``after``).

    ``assumed`` is how many were taken to run for the usual time.
    """

    before: Figures
    after: Figures | None = None
    added: list[AddedWait] = []
    assumed: int = 0


class ExportedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """How things are, as a trace in JSON lines."""

    trace: str
    nodes: int
    requests: int
