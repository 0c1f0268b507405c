"""What a user may choose: the form's fields and the API's JSON, one meaning.

``user_options`` are what JupyterHub keeps of a choice::

    {"image": "python", "name": "train-1", "project": "vision",
     "resource_group": "gpus", "slots": {"cpu": "2", "mem": "4g"}, "shmem": "1g",
     "cluster_size": 2, "cluster_mode": "multi-node", "cluster_strategy": "spread",
     "mounts": ["models", {"folder": "data/2026", "target": "in", "permission": "ro"}],
     "automatic_mounts": false}

All of it is optional. ``session_key`` is ours: the idempotency key of the request, by
which a repeated start finds the session an earlier one made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.clusters import ClusterMode, ClusterStrategy
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.mounts import MountRequest, read_mount
from backendai_hub.core.sessions import Session, check_session_name
from backendai_hub.core.slots import parse_amount, parse_slots

SESSION_KEY: Final = "session_key"

_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")
_SLOT_PREFIX: Final = "slot:"
_SHORTHANDS: Final = ("cpu", "mem")
_FIELDS: Final = (
    *("image", "name", "project", "resource_group", "slots", "shmem"),
    *("cluster_size", "cluster_mode", "cluster_strategy"),
    *("mounts", "automatic_mounts"),
)
_LONGEST: Final = 256
_LONGEST_COUNT: Final = 9
_BIGGEST_SPEC: Final = 16_384


class SpawnOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A checked choice; what is None or empty is left to the service."""

    image: str | None = None
    name: str | None = None
    project: str | None = None
    resource_group: str | None = None
    slots: dict[str, str] = {}
    shmem: str | None = None
    cluster_size: int = 1
    cluster_mode: ClusterMode = ClusterMode.SINGLE_NODE
    cluster_strategy: ClusterStrategy | None = None
    mounts: list[MountRequest] = []
    automatic_mounts: bool = True


def read_options(given: Mapping[str, Any]) -> SpawnOptions:
    """Check *given*, from wherever it came.

    Raises :class:`InvalidRequestError` whose message begins with the name of the
    field that is wrong.
    """
    known = {*_FIELDS, *_SHORTHANDS, SESSION_KEY}
    unknown = sorted(str(field)[:64] for field in given if field not in known)
    if unknown:
        raise InvalidRequestError(
            f"{unknown[0]}: there is no such option; there are {', '.join(_FIELDS)}"
        )
    name = _text(given, "name")
    if name is not None:
        check_session_name(name)
    shmem = _amount_text(given, "shmem")
    if shmem is not None:
        parse_amount("shmem", shmem)
    return SpawnOptions(
        image=_text(given, "image"),
        name=name,
        project=_text(given, "project"),
        resource_group=_text(given, "resource_group"),
        slots=_slots(given),
        shmem=shmem,
        cluster_size=_count(given, "cluster_size"),
        cluster_mode=_word(given, "cluster_mode", ClusterMode)
        or ClusterMode.SINGLE_NODE,
        cluster_strategy=_word(given, "cluster_strategy", ClusterStrategy),
        mounts=_mounts(given),
        automatic_mounts=_claim(given, "automatic_mounts"),
    )


def request_of(options: SpawnOptions, image: str, **more: Any) -> SessionRequest:
    """Ask for what somebody chose, whether it is meant or only tried out."""
    chosen = {
        **msgspec.structs.asdict(options),
        "slots": dict(options.slots),
    }
    return SessionRequest(**{**chosen, "image": image, **more})


def options_of(session: Session) -> SpawnOptions:
    """Return the choice that would ask for *session* as it is."""
    return SpawnOptions(
        image=session.image,
        name=session.name,
        project=session.project,
        resource_group=session.resource_group,
        slots=dict(session.slots),
        shmem=session.shmem,
        cluster_size=session.cluster_size,
        cluster_mode=session.cluster_mode,
        cluster_strategy=session.cluster_strategy,
    )


def read_key(given: Mapping[str, Any]) -> str | None:
    """Return the session key in *given*, if it is one the service could take."""
    key = given.get(SESSION_KEY)
    return key if isinstance(key, str) and _KEY.fullmatch(key) else None


def options_from_form(form: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Turn submitted form fields (each a list of texts) into ``user_options``.

    The field ``spec``, JSON written by the launcher, says everything when it is not
    empty. Otherwise the plain fields of the form without scripts count: ``image``,
    ``name``, ``project``, ``resource_group``, ``cpu``, ``mem``, ``shmem``,
    ``cluster_size``, ``cluster_mode``, ``cluster_strategy``, ``slot:<name>`` for any
    other slot, and ``mounts``, which may be there several times, with a folder on each
    line.
    """
    spec = _last(form, "spec")
    chosen = _read_spec(spec) if spec else _plain_fields(form)
    read_options(chosen)
    return chosen


def _read_spec(spec: str) -> dict[str, Any]:
    if len(spec) > _BIGGEST_SPEC:
        raise InvalidRequestError(f"spec: {len(spec)} characters are too many")
    try:
        chosen = msgspec.json.decode(spec, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidRequestError(f"spec: not a JSON object: {error}") from error
    return {name: value for name, value in chosen.items() if value is not None}


def _plain_fields(form: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    slots: dict[str, str] = {}
    chosen: dict[str, Any] = {}
    for field in form:
        if field == "mounts":
            lines = _lines(field, form[field])
            chosen.update({field: lines} if lines else {})
            continue
        value = _last(form, field)
        if field in {"_xsrf", "spec"} or not value:
            continue
        if field in _SHORTHANDS:
            slots[field] = value
        elif field.startswith(_SLOT_PREFIX):
            slots[field.removeprefix(_SLOT_PREFIX)] = value
        else:
            chosen[field] = value
    if slots:
        chosen["slots"] = slots
    return chosen


def _lines(field: str, values: Sequence[Any]) -> list[str]:
    texts = [_last({field: [one]}, field) for one in values]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return [line for line in lines if line]


def _last(form: Mapping[str, Sequence[Any]], field: str) -> str:
    values = form.get(field) or [""]
    value = values[-1]
    if not isinstance(value, str):
        raise InvalidRequestError(f"{field[:64]}: must be text, not a file")
    return value.strip()


def _text(given: Mapping[str, Any], field: str) -> str | None:
    value = given.get(field)
    if not _is_given(value):
        return None
    if not isinstance(value, str):
        raise InvalidRequestError(f"{field}: must be text, not {type(value).__name__}")
    if len(value) > _LONGEST:
        raise InvalidRequestError(
            f"{field}: {len(value)} characters are too many; at most {_LONGEST}"
        )
    if not value.isprintable():
        raise InvalidRequestError(f"{field}: holds characters that cannot be printed")
    return value


def _count(given: Mapping[str, Any], field: str) -> int:
    """Read a number of containers; one, unless said."""
    value = given.get(field)
    text = str(value).strip() if _is_given(value) else "1"
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_COUNT):
        raise InvalidRequestError(f"{field}: {text[:32]!r} is no whole number")
    return int(text)


_Word = TypeVar("_Word", bound=StrEnum)


def _word(given: Mapping[str, Any], field: str, words: type[_Word]) -> _Word | None:
    value = _text(given, field)
    if value is None:
        return None
    try:
        return words(value)
    except ValueError:
        raise InvalidRequestError(
            f"{field}: there is no {value[:32]!r}; use {' or '.join(words)}"
        ) from None


def _slots(given: Mapping[str, Any]) -> dict[str, str]:
    slots = given.get("slots")
    if slots is None:
        slots = {}
    if not isinstance(slots, Mapping):
        raise InvalidRequestError(
            "slots: must be an object such as {'cpu': '2', 'mem': '4g'}, not"
            f" {type(slots).__name__}"
        )
    named = {str(name): value for name, value in slots.items() if _is_given(value)}
    # {"cpu": 2, "mem": "4g"} without "slots" is what people type into an API call.
    for short in _SHORTHANDS:
        if _is_given(given.get(short)):
            named.setdefault(short, given[short])
    parse_slots(named)
    return {name: str(value).strip() for name, value in named.items()}


def _mounts(given: Mapping[str, Any]) -> list[MountRequest]:
    """Read folders: each a text such as ``data:ro``, or an object."""
    wanted = given.get("mounts")
    if not _is_given(wanted):
        return []
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise InvalidRequestError("mounts: must be a list of folders")
    return [_mount(one) for one in wanted if _is_given(one)]


def _claim(given: Mapping[str, Any], field: str) -> bool:
    """Read what holds unless somebody says that it does not."""
    value = given.get(field)
    if not _is_given(value):
        return True
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in {"true", "false"}:
        raise InvalidRequestError(f"{field}: must be true or false")
    return word == "true"


def _mount(one: Any) -> MountRequest:
    if isinstance(one, str):
        return read_mount(one)
    try:
        return msgspec.convert(one, MountRequest)
    except msgspec.ValidationError as error:
        raise InvalidRequestError(f"mounts: {error}") from None


def write_mount(mount: MountRequest) -> str:
    """Write a folder on one line, as :func:`~core.mounts.read_mount` reads it."""
    folder = "/".join(filter(None, (mount.folder, mount.subpath)))
    return ":".join(filter(None, (folder, mount.target, mount.permission)))


def _amount_text(given: Mapping[str, Any], field: str) -> str | None:
    value = given.get(field)
    if not _is_given(value):
        return None
    parse_amount(field, value)
    return str(value).strip()


def _is_given(value: Any) -> bool:
    return value is not None and value != ""
