"""What nouns are made of: kinds of fields, each read, stored and shown in one way.

A noun is a Struct whose fields are annotated with :class:`Field`. From it come the
bodies of requests, the checks, the API's description, the command line's options and
the reference pages, so that a field is declared in one place.
"""

from __future__ import annotations

import ipaddress
import typing
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.names import read_line, read_slug, suggest
from backendai_hub.core.slots import format_amount, parse_amount, parse_slots

INFINITE: Final = frozenset({"inf", "infinity", "unlimited", "∞"})


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of field is given, stored and shown."""

    given: ClassVar[Any] = Any
    """The type that a request may hold."""

    def read(self, field: str, given: Any) -> Any:
        """Return what is stored; raises :class:`InvalidRequestError`."""
        raise NotImplementedError

    def show(self, stored: Any) -> Any:
        """Return what the API shows."""
        return stored

    @property
    def column(self) -> str:
        """What is added to the field's name to get its column's."""
        return ""


class Slug(Kind, frozen=True):
    """A name."""

    given: ClassVar[Any] = str
    most: int = 64

    def read(self, field: str, given: Any) -> str:
        """Check and normalise."""
        return read_slug(field, given, self.most)


class Line(Kind, frozen=True):
    """A line of text."""

    given: ClassVar[Any] = str
    most: int = 512

    def read(self, field: str, given: Any) -> str:
        """Check and normalise."""
        return read_line(field, given, self.most)


class Page(Kind, frozen=True):
    """A text of several lines, counted in bytes."""

    given: ClassVar[Any] = str
    most: int = 64 << 10

    def read(self, field: str, given: Any) -> str:
        """Refuse what is too long, or could not be a text file."""
        size = len(given.encode("utf-8", "surrogatepass"))
        if size > self.most:
            raise InvalidRequestError(f"{field}: {size} bytes; the most is {self.most}")
        if "\0" in given or any(0xD800 <= ord(c) < 0xE000 for c in given):
            raise InvalidRequestError(f"{field}: holds a character no text file has")
        return str(given)


class Flag(Kind, frozen=True):
    """Yes or no."""

    given: ClassVar[Any] = bool

    def read(self, field: str, given: Any) -> bool:
        """Take it as it is."""
        del field
        return bool(given)


class Number(Kind, frozen=True):
    """A whole number; with ``optional`` it may be left without a value."""

    least: int = 0
    most: int = (1 << 31) - 1
    optional: bool = False
    none: str = "no limit"
    given: ClassVar[Any] = int | None

    def read(self, field: str, given: Any) -> int | None:
        """Check the range."""
        if given is None and self.optional:
            return None
        if given is None or not self.least <= given <= self.most:
            raise InvalidRequestError(
                f"{field}: {'nothing' if given is None else given} will not do; give a"
                f" number from {self.least} to {self.most}"
                + (f", or null for {self.none}" if self.optional else "")
            )
        return int(given)


class Size(Kind, frozen=True):
    """An amount of bytes as people write it, such as ``10g``."""

    given: ClassVar[Any] = str | int
    unlimited: bool = False
    """Whether -1 is allowed, and means no limit."""

    def read(self, field: str, given: Any) -> int:
        """Return bytes."""
        if self.unlimited and str(given).strip() in {"-1", *INFINITE}:
            return -1
        try:
            return parse_amount("mem", given)
        except InvalidRequestError as error:
            raise InvalidRequestError(
                f"{field}: {error.message.removeprefix('mem: ')}"
            ) from None

    def show(self, stored: Any) -> str:
        """Write it as people do."""
        return "-1" if stored == -1 else format_amount("mem", int(stored))


class Moment(Kind, frozen=True):
    """A time with its zone, such as ``2026-03-02T08:00:00Z``."""

    given: ClassVar[Any] = str

    def read(self, field: str, given: Any) -> datetime:
        """Return it in UTC; one without a zone could be anybody's."""
        try:
            found = datetime.fromisoformat(str(given).strip()).astimezone(UTC)
            is_clear = datetime.fromisoformat(str(given).strip()).tzinfo is not None
        except (ValueError, OverflowError):
            is_clear = False
        if not is_clear or not 1970 < found.year < 9999:
            raise InvalidRequestError(
                f"{field}: {str(given)[:64]!r} is no time with its zone, such as"
                " 2026-03-02T08:00:00Z or 2026-03-02T09:00:00+01:00"
            )
        return found


class Slots(Kind, frozen=True):
    """Amounts of slots: of a request, or of a limit where ``inf`` is no limit."""

    given: ClassVar[Any] = dict[str, str | int | float | None]
    limits: bool = True

    def read(self, field: str, given: Any) -> dict[str, int | None]:
        """Return smallest units by slot; None is no limit. Zero is kept in limits."""
        free = {
            slot
            for slot, amount in given.items()
            if self.limits
            and (amount is None or str(amount).strip().lower() in INFINITE)
        }
        finite = {slot: a for slot, a in given.items() if slot not in free}
        try:
            parsed = parse_slots(finite)
            parse_slots(dict.fromkeys(free, 0))
            if not self.limits:
                check_not_both(parsed)
        except InvalidRequestError as error:
            raise InvalidRequestError(f"{field}: {error.message}") from None
        if not self.limits:
            return dict(parsed.items())
        return {s: None if s in free else parsed[s] for s in sorted(given)}

    def show(self, stored: Any) -> dict[str, str]:
        """Write amounts as people do."""
        return {
            slot: "inf" if amount is None else format_amount(slot, amount)
            for slot, amount in (stored or {}).items()
        }


def check_not_both(asked: Iterable[str]) -> None:
    """Refuse to mix whole devices, their instances and shares of one kind of them."""
    names = set(asked)
    for name in sorted(names):
        kind, _, unit = name.partition(".")
        if unit == "shares" and any(n.startswith(f"{kind}.device") for n in names):
            raise InvalidRequestError(
                f"{kind}.device and {name}: ask for whole devices or for shares of"
                " them, not for both"
            )
        if any(n.startswith(f"{name}:") for n in names):
            raise InvalidRequestError(
                f"{name} and instances of it: ask for whole devices or for instances,"
                " not for both"
            )


class Choice(Kind, frozen=True):
    """One of a few words."""

    given: ClassVar[Any] = str
    of: tuple[str, ...]

    def read(self, field: str, given: Any) -> str:
        """Take one of the words, whatever its case."""
        for word in self.of:
            if word.casefold() == str(given).strip().casefold():
                return str(word)
        raise InvalidRequestError(
            f"{field}: {str(given)[:64]!r} will not do; use one of {', '.join(self.of)}"
        )


class Reference(Kind, frozen=True):
    """Another noun, given by name or id; stored by id and shown by name."""

    given: ClassVar[Any] = str | None
    noun: str
    optional: bool = False

    def read(self, field: str, given: Any) -> str | None:
        """Only see that something is given: the database knows whether it exists."""
        if given is None:
            if self.optional:
                return None
            raise InvalidRequestError(f"{field}: name a {self.noun}")
        if not 0 < len(given) <= 256:
            raise InvalidRequestError(f"{field}: name a {self.noun}")
        return str(given)

    @property
    def column(self) -> str:
        """References are stored by id."""
        return "_id"


class Words(Kind, frozen=True):
    """A list of words without order or repetition."""

    given: ClassVar[Any] = list[str]
    most: int = 256
    longest: int = 256

    def read(self, field: str, given: Any) -> list[str]:
        """Check each of them."""
        if len(given) > self.most:
            raise InvalidRequestError(f"{field}: more than {self.most} entries")
        words = [read_line(field, word, self.longest) for word in given]
        if not all(words):
            raise InvalidRequestError(f"{field}: holds an empty entry")
        return sorted(dict.fromkeys(words))


class Numbers(Kind, frozen=True):
    """A list of numbers."""

    given: ClassVar[Any] = list[int]
    least: int = 0
    most: int = (1 << 31) - 2

    def read(self, field: str, given: Any) -> list[int]:
        """Check each of them."""
        for number in given:
            if not self.least <= number <= self.most:
                raise InvalidRequestError(
                    f"{field}: {number} is not between {self.least} and {self.most}"
                )
        if len(given) > 64:
            raise InvalidRequestError(f"{field}: more than 64 entries")
        return list(dict.fromkeys(given))


class Networks(Kind, frozen=True):
    """Addresses or networks in CIDR notation; none means any address."""

    given: ClassVar[Any] = list[str]

    def read(self, field: str, given: Any) -> list[str]:
        """Return them in their normal form."""
        if len(given) > 64:
            raise InvalidRequestError(f"{field}: more than 64 entries")
        found = []
        for entry in given:
            try:
                found.append(str(ipaddress.ip_network(entry.strip())))
            except ValueError as error:
                raise InvalidRequestError(
                    f"{field}: {entry[:64]!r} is not an address or network such as"
                    f" 10.1.0.0/16 ({error})"
                ) from None
        return list(dict.fromkeys(found))


class HostPermission(StrEnum):
    """What may be done with the virtual folders of a storage host."""

    CREATE = "create-vfolder"
    MODIFY = "modify-vfolder"
    DELETE = "delete-vfolder"
    MOUNT = "mount-in-session"
    UPLOAD = "upload-file"
    DOWNLOAD = "download-file"
    INVITE = "invite-others"
    SHARE = "set-user-specific-permission"


class Hosts(Kind, frozen=True):
    """Storage hosts, and what is permitted on each; ``*`` is everything."""

    given: ClassVar[Any] = dict[str, list[str]]

    def read(self, field: str, given: Any) -> dict[str, list[str]]:
        """Check hosts and permissions."""
        every = [str(p) for p in HostPermission]
        found = {}
        for host, permissions in given.items():
            name = read_line(field, host, 256)
            if not name:
                raise InvalidRequestError(f"{field}: a host needs a name")
            for permission in permissions:
                if permission not in {*every, "*"}:
                    raise InvalidRequestError(
                        f"{field}: {permission[:64]!r} is not a permission of a host"
                        f"{suggest(permission, every)}; use {', '.join(every)}"
                    )
            chosen = every if "*" in permissions else permissions
            found[name] = sorted(set(chosen))
        return found


class Document(Kind, frozen=True):
    """A small document with a fixed form, kept as it is given."""

    form: Any
    given: ClassVar[Any] = dict[str, Any] | None
    optional: bool = False
    gone: Mapping[str, str] = {}
    """What once was a part of it, such as ``a.b``, and what to say to who gives it."""

    def read(self, field: str, given: Any) -> Any:
        """Check it against its form; what is left out keeps its default."""
        if given is None:
            if self.optional:
                return None
            given = {}
        if len(msgspec.json.encode(given)) > 64 << 10:
            raise InvalidRequestError(f"{field}: more than 64 KiB")
        for part, why in self.gone.items():
            if isinstance(given, Mapping) and drop_gone(given, [part]) is not given:
                raise InvalidRequestError(f"{field}: {part} {why}")
        try:
            return msgspec.to_builtins(msgspec.convert(given, self.form))
        except msgspec.ValidationError as error:
            raise InvalidRequestError(f"{field}: {error}") from None

    def show(self, stored: Any) -> Any:
        """Show it with its defaults."""
        if stored is None and self.optional:
            return None
        known = drop_gone(stored or {}, self.gone)
        return msgspec.to_builtins(msgspec.convert(known, self.form))


def drop_gone(stored: Mapping[str, Any], gone: Iterable[str]) -> Mapping[str, Any]:
    """Leave out of a document what is not a part of it any more."""
    for part in gone:
        first, _, rest = part.partition(".")
        if first not in stored:
            continue
        left = {k: v for k, v in stored.items() if k != first}
        if rest:
            inner = stored[first]
            smaller = drop_gone(inner, [rest]) if isinstance(inner, Mapping) else inner
            if smaller is inner:
                continue
            left[first] = smaller
        stored = left
    return stored


class Rank(StrEnum):
    """Who may set a field, of those who may change the noun at all."""

    ANYBODY = "anybody"
    DOMAIN_ADMIN = "domain-admin"
    SUPERADMIN = "superadmin"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field that people set. ``once`` fields are fixed at creation."""

    kind: Kind
    help: str
    once: bool = False
    by: Rank = Rank.ANYBODY


def field(kind: Kind, help: str, **more: Any) -> Field:  # noqa: A002 - traitlets' word
    """Declare a field."""
    return Field(kind=kind, help=help, **more)


@cache
def fields_of(noun: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Return the declared fields of *noun*, in their order."""
    hints = typing.get_type_hints(noun, include_extras=True)
    found = {}
    for name, hint in hints.items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, Field):
                found[name] = extra
    return found


@cache
def defaults_of(noun: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the defaults of *noun*, as they are shown; required fields have none."""
    found = {}
    for declared in msgspec.structs.fields(noun):
        if declared.default is not msgspec.NODEFAULT:
            found[declared.name] = declared.default
        elif declared.default_factory is not msgspec.NODEFAULT:
            found[declared.name] = declared.default_factory()
    return found


@cache
def request_type(noun: type[msgspec.Struct], *, change: bool) -> type[msgspec.Struct]:
    """Make the body that creates *noun*, or with ``change`` the one that changes it.

    What is left out of a change stays; what is left out of a creation gets its
    default, and what has none is demanded.
    """
    wanted: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, declared in fields_of(noun).items():
        if change and declared.once:
            continue
        given: Any = declared.kind.given
        hint: Any = typing.Annotated[given, msgspec.Meta(description=declared.help)]
        if change or name in defaults_of(noun):
            hint = typing.Union[hint, msgspec.UnsetType]  # noqa: UP007 - made at run time
            wanted.append((name, hint, msgspec.UNSET))
        else:
            wanted.append((name, hint))
    verb = "Change" if change else "Request"
    made = msgspec.defstruct(
        f"{noun.__name__}{verb}",
        wanted,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    made.__doc__ = (
        f"Fields of a {noun.__name__} to change; what is left out stays."
        if change
        else f"A new {noun.__name__}."
    )
    return made


def read_fields(
    noun: type[msgspec.Struct], given: Mapping[str, Any], *, change: bool
) -> dict[str, Any]:
    """Return stored values by column, without references resolved.

    Every field that is wrong is reported at once: raises
    :class:`InvalidRequestError` whose ``errors`` name the fields.
    """
    values: dict[str, Any] = {}
    errors: list[dict[str, str]] = []
    for name, declared in fields_of(noun).items():
        if name in given:
            raw = given[name]
        elif not change and name in defaults_of(noun):
            raw = defaults_of(noun)[name]
        else:
            continue
        try:
            values[name] = declared.kind.read(name, raw)
        except InvalidRequestError as error:
            errors.append({"field": name, "message": error.message})
    if errors:
        raise InvalidRequestError(
            "; ".join(e["message"] for e in errors), errors=errors
        )
    return values


def given_fields(body: msgspec.Struct) -> dict[str, Any]:
    """Return what a request says, without what it leaves out."""
    return {
        name: value
        for name in body.__struct_fields__
        if (value := getattr(body, name)) is not msgspec.UNSET
    }
