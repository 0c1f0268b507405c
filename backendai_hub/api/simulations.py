"""Questions about what would be, and their answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from backendai_hub.api.preemptions import PreemptionTrialRequest
from backendai_hub.core.simulation import Figures, WaitFigures

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
    job_priority: Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)] = 0
    preemptible: bool = True


class PreemptionChange(PreemptionTrialRequest, frozen=True, kw_only=True):
    """Rules of preemption that are different; ``enabled`` turns it on or off."""

    enabled: bool | None = None


class QuotaRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a domain, project or user would be guaranteed, and have at most.

    What is left out stays as it is; a ``maximum`` of null is lifted. A project's name
    means it in every domain, ``domain:project`` in that one.
    """

    scope: Literal["domain", "project", "user"]
    name: str
    guaranteed: dict[str, Any] = {}
    maximum: dict[str, Any] = {}


class SimulationRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What to simulate, and what would be different.

    Without a ``trace`` (JSON lines or CSV) it begins with how things are. Those who
    say nothing of how long they run are taken to run ``usual_run_time`` seconds.
    ``weights`` are of domains, projects and users, by name; they, ``preemption`` and
    ``quotas`` count in every resource group.
    """

    trace: str | None = None
    drain: list[str] = []
    add: Annotated[list[AddedRequest], msgspec.Meta(max_length=100)] = []
    sequencer: str | None = None
    placement: str | None = None
    weights: dict[str, Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]] = {}
    preemption: PreemptionChange = PreemptionChange()
    quotas: Annotated[list[QuotaRequest], msgspec.Meta(max_length=100)] = []
    usual_run_time: Annotated[int, msgspec.Meta(ge=1, le=_MOST_SECONDS)] = 14_400


class AddedWait(msgspec.Struct, frozen=True, kw_only=True):
    """When what was added started; without ``seconds`` it never did, for a reason."""

    request: str
    seconds: int | None
    reason: str = ""


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """How things go as they are (``before``) and with what is different (``after``).

    ``assumed`` is how many were taken to run for the usual time, ``held`` how many
    wait who are held and took no part, and ``recorded`` how long those of a trace
    have really waited, where it says so.
    """

    before: Figures
    after: Figures | None = None
    added: list[AddedWait] = []
    assumed: int = 0
    held: int = 0
    recorded: WaitFigures | None = None


class SimulationProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the simulation is that is being made, if one is: 0 to 1."""

    running: bool
    part: float
    seconds: float


class TraceQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to export: how things are, or what was asked for in the last ``days``.

    With ``pseudonyms`` nobody is called by their name.
    """

    days: Annotated[int, msgspec.Meta(ge=1, le=366)] | None = None
    pseudonyms: bool = False


class ExportedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """How things are or were, as a trace in JSON lines.

    ``left_out`` is how many of the time's sessions there was no room for in it.
    """

    trace: str
    nodes: int
    requests: int
    left_out: int = 0
