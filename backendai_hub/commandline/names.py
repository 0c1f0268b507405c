"""Names for shell completion, asked of the platform in use if it answers at once."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import click

from backendai_hub.commandline.asking import find_setting
from backendai_hub.core.errors import HubError

_PATIENCE: Final = 2.0
_MOST: Final = 50


def find_names(noun: str, incomplete: str) -> list[str]:
    """Return names that begin with what is typed; none if nobody is logged in."""

    async def ask() -> list[str]:
        access = find_setting().find_login()
        if access is None:
            return []
        async with access.open() as client, asyncio.timeout(_PATIENCE):
            page = await client.nouns(noun).page(limit=_MOST, search=incomplete or None)
            return [str(item.name) for item in page.items]

    try:
        return [name for name in asyncio.run(ask()) if name.startswith(incomplete)]
    except (HubError, TimeoutError):
        return []


class NounName(click.ParamType[Any]):
    """The name or id of an existing item."""

    name = "reference"

    def __init__(self, noun: str) -> None:
        self.noun = noun

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer names."""
        del ctx, param
        found = find_names(self.noun, incomplete)
        return [click.shell_completion.CompletionItem(name) for name in found]
