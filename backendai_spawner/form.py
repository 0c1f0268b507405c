"""The launch form: a place for the launcher's bundle, usable without scripts.

What stands inside ``#backendai-spawn`` is a plain form. The bundle, when it loads,
takes that element over and writes its choice as JSON into the hidden field ``spec``,
which then wins over the plain fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import msgspec

from backendai_hub.api.sessions import ImageChoice, Resources, SlotRoom
from backendai_hub.client.tenancy import PresetCheck
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.mounts import MountRequest
from backendai_spawner.options import read_options, write_mount

_PLAIN = {"cpu": ("CPU cores", "cpu"), "mem": ("Memory", "mem")}


def render_form(  # noqa: PLR0913 - what the page needs, each by its name
    resources: Resources,
    *,
    prefix: str,
    chosen: Mapping[str, Any],
    server: str = "",
    checked: PresetCheck | None = None,
    asks_at: str = "",
    folders_at: str = "",
    files_at: str = "/hub/backendai/static/",
) -> str:
    """Return the inner HTML of the spawn page's form.

    *checked* adds what only the launcher shows: presets, and the room in each group.
    At *asks_at* it asks what would become of a choice, at *folders_at* which folders
    there are; *files_at* is where the launcher's own files lie.
    """
    mounts = _read_mounts(chosen.get("mounts"))
    chosen = {**chosen, **({"mounts": mounts} if "mounts" in chosen else {})}
    return "".join(
        (
            '<div id="backendai-spawn"',
            f' data-service="{escape(prefix)}"',
            f' data-server-name="{escape(server)}"',
            f' data-resources="{_attribute(resources)}"',
            f' data-dry-run="{escape(asks_at)}"' if asks_at else "",
            f' data-folders="{escape(folders_at)}"' if folders_at else "",
            f' data-presets="{_attribute(checked)}"' if checked else "",
            f' data-options="{_attribute(chosen)}">',
            _plain_form(resources, chosen),
            "</div>",
            '<input type="hidden" name="spec" value="">',
            *_bundle(files_at),
        )
    )


def render_outage(message: str, *, prefix: str) -> str:
    """Return what stands in the form's place while the service does not answer."""
    return "".join(
        (
            f'<div id="backendai-spawn" data-service="{escape(prefix)}">',
            '<div class="alert alert-warning" role="alert">',
            "<strong>The Backend.AI service does not answer at the moment.</strong> ",
            "Reload this page in a little while to choose what your session gets. If"
            " you start it now, it waits for the service and then gets the default"
            " environment.",
            f'<div class="small mt-2 text-body-secondary">{escape(message)}</div>',
            "</div></div>",
        )
    )


def _plain_form(resources: Resources, chosen: Mapping[str, Any]) -> str:
    slots = chosen.get("slots")
    slots = slots if isinstance(slots, Mapping) else {}
    fields = [
        _image_field(resources.images, str(chosen.get("image") or "")),
        *_place_fields(resources, chosen),
    ]
    rooms = {room.slot: room for room in resources.room}
    fields += [
        _amount_field(slot, rooms.get(slot), str(slots.get(slot) or ""))
        for slot in sorted({*_PLAIN, *rooms}, key=_slot_order)
    ]
    name = (
        '<input class="form-control" id="backendai-name" name="name" maxlength="64"'
        f' value="{escape(str(chosen.get("name") or ""))}"'
        ' placeholder="chosen for you">'
    )
    fields.append(_field("name", "Session name", name))
    fields.append(_folders_field(chosen.get("mounts") or ()))
    return f'<div class="row g-3">{"".join(fields)}</div>'


def _image_field(images: Iterable[ImageChoice], chosen: str) -> str:
    options = []
    for image in images:
        selected = " selected" if image.name == chosen else ""
        later = "" if image.installed else " (has to be fetched first)"
        least = ", ".join(f"{slot} {amount}" for slot, amount in image.minimum.items())
        label = (image.title or image.name) + later
        label += f" – at least {least}" if least else ""
        options.append(
            f'<option value="{escape(image.name)}"{selected}>{escape(label)}</option>'
        )
    select = (
        '<select class="form-select" id="backendai-image" name="image">'
        f"{''.join(options)}</select>"
    )
    return _field("image", "Environment", select, width=12)


def _place_fields(resources: Resources, chosen: Mapping[str, Any]) -> Iterable[str]:
    """Yield where a session may belong and run, as far as there is a choice."""
    places = (
        ("project", "Project", resources.projects, resources.project),
        ("resource_group", "Resource group", resources.resource_groups, ""),
    )
    for name, label, open_ones, usual in places:
        if len(open_ones) > 1:
            picked = str(chosen.get(name) or "")
            yield _choice(
                name, label, open_ones, picked if picked in open_ones else usual
            )


def _choice(name: str, label: str, values: Iterable[str], picked: str) -> str:
    options = "".join(
        f'<option value="{escape(value)}"{" selected" if value == picked else ""}>'
        f"{escape(value)}</option>"
        for value in values
    )
    ident = name.replace("_", "-")
    select = (
        f'<select class="form-select" id="backendai-{ident}" name="{name}">'
        f"{options}</select>"
    )
    return _field(ident, label, select)


def _amount_field(slot: str, room: SlotRoom | None, chosen: str) -> str:
    label, name = _PLAIN.get(slot, (slot, f"slot:{slot}"))
    if room is None:
        hint = ""
    else:
        hint = (
            '<div class="form-text">'
            f"{escape(room.free)} of {escape(room.total)} free now,"
            f" {escape(room.largest)} on one node; the largest node has"
            f" {escape(room.most)}</div>"
        )
    control = (
        f'<input class="form-control" id="backendai-{escape(slot)}"'
        f' name="{escape(name)}" value="{escape(chosen)}" maxlength="40"'
        ' autocomplete="off"'
        ' placeholder="what the environment prefers">'
        f"{hint}"
    )
    return _field(slot, label, control)


def _read_mounts(chosen: Any) -> list[MountRequest]:
    """Read the folders of an earlier choice, which programs may have written."""
    try:
        return read_options({"mounts": chosen}).mounts
    except InvalidRequestError:
        return []


def _folders_field(mounts: Iterable[MountRequest]) -> str:
    """Ask for folders, one a line."""
    lines = escape("\n".join(map(write_mount, mounts)))
    area = (
        '<textarea class="form-control" id="backendai-mounts" name="mounts" rows="2"'
        f' spellcheck="false" placeholder="data:ro">\n{lines}</textarea>'
        '<div class="form-text">One a line: the folder\'s name, then where it appears'
        " and how, as in <code>data</code>, <code>data:ro</code> or"
        " <code>data:sets:ro</code></div>"
    )
    return _field("mounts", "Folders", area, width=12)


def _field(ident: str, label: str, control: str, *, width: int = 6) -> str:
    return (
        f'<div class="col-md-{width}">'
        f'<label class="form-label" for="backendai-{escape(ident)}">{escape(label)}'
        f"</label>{control}</div>"
    )


def _slot_order(slot: str) -> tuple[int, str]:
    order = tuple(_PLAIN)
    return (order.index(slot) if slot in order else len(order), slot)


def _bundle(files_at: str) -> tuple[str, str]:
    place = f"{escape(files_at)}spawn"
    return (
        f'<link rel="stylesheet" href="{place}.css">',
        f'<script type="module" src="{place}.js"></script>',
    )


def _attribute(document: Any) -> str:
    return escape(msgspec.json.encode(document).decode())
