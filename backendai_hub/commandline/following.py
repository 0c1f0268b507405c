"""How far a simulation is, shown while somebody waits for it at a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol, TextIO

from backendai_hub.api.simulations import SimulationProgress
from backendai_hub.core.errors import HubError

_EVERY: Final = 0.5
"""How many seconds pass between two looks."""


class Teller(Protocol):
    """Who can be asked how far it is."""

    async def simulation_progress(self) -> SimulationProgress:
        """Say how far it is."""
        ...


@asynccontextmanager
async def following(
    teller: Teller, stream: TextIO, *, every: float = _EVERY
) -> AsyncIterator[None]:
    """Show on *stream*, if it is a terminal, how far it is, until this is left."""
    if not stream.isatty():
        yield
        return
    showing = asyncio.create_task(_show(teller, stream, every))
    try:
        yield
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


async def _show(teller: Teller, stream: TextIO, every: float) -> None:
    from rich.console import Console  # noqa: PLC0415 - only terminals need it
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("simulating", total=1.0)
        while True:
            await asyncio.sleep(every)
            try:
                told = await teller.simulation_progress()
            except HubError:
                # What is waited for says itself what is wrong.
                return
            bar.update(task, completed=told.part)
