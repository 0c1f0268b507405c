"""``backendai admin fair-share``: whose turn it is in a resource group, and why."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from backendai_hub.api.shares import ShareChange
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.bulk import FILE, read_bytes
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.names import NounName

_GROUP: Final = click.Argument(["group"], type=NounName("resource-group"))
_DOMAIN: Final = click.Option(["--domain"], type=NounName("domain"), help="Its domain.")
_PROJECT: Final = click.Option(
    ["--project"], type=NounName("project"), help="A project of the domain."
)
_COLUMNS: Final = (
    "name",
    "weight",
    "live_share",
    "dominant_slot",
    "history_share",
    "share",
    "factor",
    "held",
    "waiting",
    "guaranteed",
    "maximum",
)
_CSV_FIELDS: Final = ("domain", "project", "user", "weight", "guaranteed", "maximum")


async def _show(
    asking: Asking, *, group: str, domain: str | None, project: str | None
) -> None:
    found = await asking.client.shares.show(group, domain=domain, project=project)
    if asking.output.as_json:
        asking.output.show_one(found)
        return
    if found.scheduler != "fair-share":
        asking.output.note(
            f"{found.resource_group} is worked off by {found.scheduler}; its shares"
            " count once its scheduler is fair-share"
        )
    for warning in found.warnings:
        asking.output.note(warning)
    lines = []
    for entry in found.entries:
        line = msgspec.to_builtins(entry)
        for name in ("live_share", "history_share", "share", "factor"):
            line[name] = f"{line[name]:.4f}"
        line["weight"] = f"{entry.weight:g}" + (
            " (default)" if entry.weight_is_default else ""
        )
        lines.append(line)
    asking.output.show_list(lines, _COLUMNS)


async def _set(
    asking: Asking,
    *,
    group: str,
    domain: str | None,
    projects: tuple[str, ...],
    users: tuple[str, ...],
    csv_file: Path | None,
    **given: Any,
) -> None:
    values = _read_values(given)
    if csv_file is not None:
        if domain or projects or users or values:
            raise click.UsageError("give --csv alone: each of its lines says it all")
        changes = _read_table(csv_file)
    else:
        if domain is None or not values:
            raise click.UsageError(
                "name the --domain (and --project and --user), and give a --weight,"
                " a --guarantee or a --maximum, or --csv"
            )
        changes = [
            ShareChange(domain=domain, project=project, user=user, **values)
            for project, user in _list_scopes(projects, users)
        ]
    changed = await asking.client.shares.change(group, changes)
    for warning in dict.fromkeys(w for one in changed for w in one.warnings):
        asking.output.note(warning)
    asking.output.show_list(
        changed, ("domain", "project", "user", "weight", "guaranteed", "maximum")
    )


def _list_scopes(
    projects: tuple[str, ...], users: tuple[str, ...]
) -> list[tuple[str | None, str | None]]:
    """List whom a command names: users of one project, several projects, a domain."""
    if users:
        if len(projects) != 1:
            raise click.UsageError("name the one --project that the users are in")
        return [(projects[0], user) for user in users]
    return [(project, None) for project in projects] or [(None, None)]


def _read_values(given: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if given["weight"] is not None and given["default_weight"]:
        raise click.UsageError("give --weight or --default-weight, not both")
    if given["guarantee"] and given["no_guarantee"]:
        raise click.UsageError("give --guarantee or --no-guarantee, not both")
    if given["maximum"] and given["no_maximum"]:
        raise click.UsageError("give --maximum or --no-maximum, not both")
    if given["weight"] is not None or given["default_weight"]:
        values["weight"] = given["weight"]
    if given["guarantee"] or given["no_guarantee"]:
        values["guaranteed"] = _read_amounts(given["guarantee"]) or None
    if given["maximum"] or given["no_maximum"]:
        values["maximum"] = _read_amounts(given["maximum"]) or None
    return values


def _read_amounts(pairs: tuple[str, ...]) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {}
    for pair in pairs:
        slot, equals, amount = pair.partition("=")
        if not equals:
            raise click.UsageError(f"{pair!r}: write it as SLOT=AMOUNT, such as cpu=4")
        found[slot.strip()] = amount.strip()
    return found


def _read_table(file: Path) -> list[ShareChange]:
    text = read_bytes(file).decode("utf-8-sig", "replace")
    rows = csv.DictReader(text.splitlines())
    unknown = sorted(set(rows.fieldnames or ()) - set(_CSV_FIELDS))
    if unknown or "domain" not in (rows.fieldnames or ()):
        raise click.UsageError(
            f"{file}: the first line names {', '.join(_CSV_FIELDS)}; domain has to be"
            " there" + (f"; {', '.join(unknown)} is none of them" if unknown else "")
        )
    return [_read_row(file, number, row) for number, row in enumerate(rows, 2)]


def _read_row(file: Path, number: int, row: Mapping[str, str | None]) -> ShareChange:
    """Read a line: an empty weight is the default one; empty amounts are none."""
    cells = {name: (row.get(name) or "").strip() for name in _CSV_FIELDS}
    values: dict[str, Any] = {}
    if "weight" in row:
        try:
            values["weight"] = float(cells["weight"]) if cells["weight"] else None
        except ValueError:
            raise click.UsageError(
                f"{file}, line {number}: {cells['weight'][:32]!r} is no weight"
            ) from None
    for name in {"guaranteed", "maximum"} & row.keys():
        values[name] = _read_amounts(tuple(cells[name].split())) or None
    return ShareChange(
        domain=cells["domain"],
        project=cells["project"] or None,
        user=cells["user"] or None,
        **values,
    )


async def _usage(asking: Asking, *, group: str, days: int, **scope: str | None) -> None:
    found = await asking.client.shares.usage(group, days=days, **scope)
    if asking.output.as_json:
        asking.output.show_one(found)
        return
    slots = sorted({slot for day in found.days for slot in day.hours})
    lines = [
        {"day": day.day, **{s: f"{day.hours.get(s, 0.0):.2f}" for s in slots}}
        for day in found.days
    ]
    asking.output.show_list(lines, ("day", *slots))


def _make_show() -> click.Command:
    return make_command(
        "show",
        _show,
        [_GROUP, _DOMAIN, _PROJECT],
        help=(
            "Show how domains stand, with --domain its projects, with --project the"
            " users of that. Whose turn comes first stands first."
        ),
    )


def _make_set() -> click.Command:
    return make_command(
        "set",
        _set,
        [
            _GROUP,
            _DOMAIN,
            click.Option(
                ["--project", "projects"],
                type=NounName("project"),
                multiple=True,
                help="A project of the domain; can be given several times.",
            ),
            click.Option(
                ["--user", "users"],
                type=NounName("user"),
                multiple=True,
                help="A user of the project; can be given several times.",
            ),
            click.Option(["--weight"], type=float, help="How much it weighs."),
            click.Option(
                ["--default-weight"], is_flag=True, help="Weigh what the group says."
            ),
            click.Option(
                ["--guarantee"],
                multiple=True,
                metavar="SLOT=AMOUNT",
                help="What it gets back from borrowers once it asks for it; can be"
                " given several times.",
            ),
            click.Option(["--no-guarantee"], is_flag=True, help="Guarantee nothing."),
            click.Option(
                ["--maximum"],
                multiple=True,
                metavar="SLOT=AMOUNT",
                help="What it gets at most in this group; can be given several times.",
            ),
            click.Option(["--no-maximum"], is_flag=True, help="Set no maximum."),
            click.Option(
                ["--csv", "csv_file"],
                type=FILE,
                help="A table of domain, project, user, weight, guaranteed (such as"
                " 'cpu=4 mem=16g'), maximum.",
            ),
        ],
        help=(
            "Set weights, guarantees and maxima of a domain, of projects in it, or of"
            " users of a project: all of them, or nothing if anything is wrong."
        ),
    )


def _make_usage() -> click.Command:
    return make_command(
        "usage",
        _usage,
        [
            _GROUP,
            _DOMAIN,
            _PROJECT,
            click.Option(["--user"], type=NounName("user"), help="A user of it."),
            click.Option(
                ["--days"],
                type=click.IntRange(1, 400),
                default=30,
                show_default=True,
                help="How many days.",
            ),
        ],
        help="Show what has been used, day by day, in amounts times hours.",
    )


fair_share = LazyGroup(
    "fair-share",
    help="Whose turn it is in a resource group: weights, guarantees, past use.",
    made={"show": _make_show, "set": _make_set, "usage": _make_usage},
)
