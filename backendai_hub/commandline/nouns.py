"""Commands for every noun, made from its fields."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.bulk import make_bulk, make_bulk_add, show_results
from backendai_hub.commandline.fields import gather_fields, make_options
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.listing import (
    make_list_options,
    page_size,
    read_columns,
    read_filters,
    show_items,
)
from backendai_hub.commandline.names import NounName
from backendai_hub.core.fields import fields_of
from backendai_hub.core.nouns import Noun, Verb, noun_of

READING: Final = ("list", "info")
_HIDDEN: Final = ("secret",)

COLUMNS: Final[Mapping[str, str]] = {
    "domain": "name is_active is_default total_resource_slots",
    "project": "domain name is_active type total_resource_slots",
    "user": "name domain project role status email",
    "keypair": "name user is_active is_default is_admin resource_policy description",
    "keypair-policy": "name is_default total_resource_slots max_concurrent_sessions"
    " max_session_lifetime idle_timeout",
    "user-policy": "name is_default max_vfolder_count max_quota_scope_size",
    "project-policy": "name is_default max_vfolder_count max_quota_scope_size"
    " max_network_count",
    "resource-group": "name is_active is_public is_default scheduler",
    "preset": "name resource_group resource_slots shared_memory",
    "slot-type": "name slot_type enabled required display_name",
    "registry": "name type url project is_active rescanned_at",
    "image": "name architecture registry status installed aliases",
    "folder": "name host status access user project used_bytes mounted_by",
}
"""What lists show if nobody says."""
_SWITCH: Final[Mapping[str, tuple[str, Any, Any]]] = {
    "user": ("status", "active", "inactive"),
    "slot-type": ("enabled", True, False),
}


def make_group(noun: Noun, *, only: Sequence[str] | None = None) -> LazyGroup:
    """Make the group of a noun's commands, or of some of them."""
    words = noun.plural.replace("-", " ")
    made: dict[str, Callable[[], click.Command]] = {
        "list": lambda: _make_list(noun),
        "info": lambda: _make_info(noun),
        "update": lambda: _make_update(noun),
        "bulk": lambda: make_bulk(noun),
    }
    if Verb.CREATE in noun.verbs:
        made["add"] = lambda: _make_add(noun)
        made["bulk-add"] = lambda: make_bulk_add(noun)
    if Verb.PURGE in noun.verbs:
        made["purge"] = lambda: _make_purge(noun)
    if switch := _find_switch(noun):
        name, on, off = switch
        made["activate"] = lambda: _make_switch(noun, "activate", {name: on})
        made["deactivate"] = lambda: _make_switch(noun, "deactivate", {name: off})
    if only is not None:
        made = {name: make for name, make in made.items() if name in only}
    return LazyGroup(noun.name, made=made, help=f"The {words}.")


def _find_switch(noun: Noun) -> tuple[str, Any, Any] | None:
    if noun.name in _SWITCH:
        return _SWITCH[noun.name]
    return ("is_active", True, False) if "is_active" in fields_of(noun.shown) else None


def _fields(noun: Noun) -> tuple[str, ...]:
    return tuple(f for f in noun.shown.__struct_fields__ if f not in _HIDDEN)


def _one(noun: Noun) -> click.Argument:
    return click.Argument(["reference"], metavar="NAME", type=NounName(noun.name))


def _several(noun: Noun) -> click.Argument:
    return click.Argument(
        ["references"],
        metavar="NAME...",
        nargs=-1,
        required=True,
        type=NounName(noun.name),
    )


def _words(noun: Noun) -> str:
    return noun.name.replace("-", " ")


def _make_list(noun: Noun) -> click.Command:
    known = _fields(noun)

    async def ask(
        asking: Asking,
        *,
        filters: tuple[str, ...],
        columns: str | None,
        limit: int,
        everything: bool,
        **paging: str | None,
    ) -> None:
        chosen = read_columns(columns, COLUMNS[noun.name].split(), known)
        most = None if everything else limit
        items = asking.client.nouns(noun.name).list(
            page_size=page_size(most), **read_filters(filters, noun.filters), **paging
        )
        await show_items(asking, items, columns=chosen, limit=most)

    return make_command(
        "list",
        ask,
        make_list_options(noun.filters, noun.sorts, known),
        help=f"List {noun.plural.replace('-', ' ')}.",
    )


def _make_info(noun: Noun) -> click.Command:
    async def ask(asking: Asking, *, reference: str) -> None:
        asking.output.show_one(
            _visible(await asking.client.nouns(noun.name).get(reference))
        )

    return make_command("info", ask, [_one(noun)], help=f"Show one {_words(noun)}.")


def _make_add(noun: Noun, verb: str = "add") -> click.Command:
    named = "name" in fields_of(noun.shown)
    params: list[click.Parameter] = [*make_options(noun, change=False)]
    if named:
        params.insert(0, click.Argument(["name"]))

    async def ask(asking: Asking, **given: Any) -> None:
        fields = gather_fields(given)
        if noun.name == "keypair" and "user" not in fields:
            fields["user"] = (await asking.client.me()).name
        made = await asking.client.nouns(noun.name).create(**fields)
        asking.output.show_one(_visible(made))
        if getattr(made, "secret", None):
            asking.output.note("the secret is shown only this once")

    return make_command(verb, ask, params, help=f"Make a {_words(noun)}.")


def make_create(name: str) -> click.Command:
    """Make the command that makes one of a noun, by its other name."""
    return _make_add(noun_of(name), "create")


def _make_update(noun: Noun) -> click.Command:
    async def ask(
        asking: Asking, *, reference: str, if_match: int | None, **given: Any
    ) -> None:
        fields = gather_fields(given)
        if not fields:
            raise click.UsageError("name at least one field to change")
        asking.output.show_one(
            _visible(
                await asking.client.nouns(noun.name).update(
                    reference, if_match=if_match, **fields
                )
            )
        )

    params = [_one(noun), *make_options(noun, change=True), _IF_MATCH]
    text = f"Change fields of a {_words(noun)}; what is not named stays."
    return make_command("update", ask, params, help=text)


def _make_switch(noun: Noun, verb: str, fields: Mapping[str, Any]) -> click.Command:
    async def ask(asking: Asking, *, references: tuple[str, ...]) -> None:
        collection = asking.client.nouns(noun.name)
        if len(references) == 1:
            changed = await collection.update(references[0], **fields)
            asking.output.say(f"{verb}d {noun.name} {changed.name}", changed)
            return
        answer = await collection.bulk(update=dict.fromkeys(references, fields))
        show_results(asking, answer)

    help_text = {
        "activate": f"Let {noun.plural.replace('-', ' ')} be used again.",
        "deactivate": f"Let nothing new come of {noun.plural.replace('-', ' ')};"
        " what runs goes on.",
    }[verb]
    return make_command(verb, ask, [_several(noun)], help=help_text)


def _make_purge(noun: Noun) -> click.Command:
    async def ask(
        asking: Asking,
        *,
        references: tuple[str, ...],
        if_match: int | None,
        yes: bool,
        also: tuple[str, ...] = (),
    ) -> None:
        if also and len(references) > 1:
            raise click.UsageError("--also goes with one name only")
        if if_match is not None and len(references) > 1:
            raise click.UsageError("--if-match goes with one name only")
        if not yes:
            confirm_loss(noun, references)
        collection = asking.client.nouns(noun.name)
        if len(references) == 1:
            await collection.purge(references[0], if_match=if_match, also=also)
            asking.output.say(f"purged {noun.name} {references[0]}")
            return
        show_results(asking, await collection.bulk(purge=references))

    params = [_several(noun), _IF_MATCH, _YES]
    if noun.purge_also:
        kinds = click.Choice(noun.purge_also)
        help_also = "Remove this as well, which would be left to you otherwise."
        params.append(
            click.Option(["--also"], type=kinds, multiple=True, help=help_also)
        )
    text = f"Remove {noun.plural.replace('-', ' ')} for good, with all that is theirs."
    return make_command("purge", ask, params, help=text)


def confirm_loss(noun: Noun, references: Sequence[str]) -> None:
    """Ask a person to type what they are about to lose."""
    if not sys.stdin.isatty():
        raise click.UsageError("this cannot be undone; say --yes if it is meant")
    wanted = references[0] if len(references) == 1 else str(len(references))
    what = "its name" if len(references) == 1 else "how many they are"
    typed = click.prompt(
        f"This removes {noun.name} {', '.join(references)} for good. Type {what}",
        err=True,
    )
    if typed != wanted:
        raise click.UsageError("that is not it; nothing was removed")


def _visible(item: Any) -> dict[str, Any]:
    """Leave out what is only written, and a secret that has not been told."""
    document: dict[str, Any] = msgspec.to_builtins(item)
    hidden = {"password"} if document.get("secret") else {"password", "secret"}
    return {name: value for name, value in document.items() if name not in hidden}


_IF_MATCH: Final = click.Option(
    ["--if-match"],
    type=int,
    metavar="REVISION",
    help="Only if it is still at this revision.",
)
_YES: Final = click.Option(["--yes"], is_flag=True, help="Do not ask.")


def group_of(name: str, *, only: Sequence[str] | None = None) -> LazyGroup:
    """Make the group of the noun called *name*."""
    return make_group(noun_of(name), only=only)
