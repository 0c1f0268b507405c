"""What is written of an act, and how a chain tells that it was touched."""

from __future__ import annotations

import csv
import io
import string
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import example, given

from backendai_hub.api.audit import AuditEntry
from backendai_hub.core.audit import (
    GENESIS,
    Act,
    Asking,
    ChainCheck,
    Entry,
    Head,
    canonical,
    chain,
    derive_audit_key,
    is_change,
)
from backendai_hub.core.redaction import (
    HIDDEN,
    MOST_TEXT,
    clean_text,
    is_secret,
    redact,
)
from backendai_hub.db.chain import make_entry
from backendai_hub.handlers.audit import _csv
from backendai_hub.handlers.trail import SeenKeys
from backendai_hub.operations.audit_heads import HeadFile
from backendai_hub.operations.refusals import (
    MOST_FROM_ADDRESS,
    MOST_OF_PERSON,
    MOST_OF_STRANGERS,
    WINDOW,
    RefusalLimiter,
    Verdict,
)

KEY = b"k" * 32
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CANARY = "canary-5ecr3t"


def make_row(seq: int = 1, **changes: Any) -> Entry:
    usual: dict[str, Any] = {
        "seq": seq,
        "at": NOON,
        "request_id": "r",
        "actor_id": None,
        "actor": "ada",
        "acted_as": "",
        "credential": "hub",
        "address": "10.0.0.1",
        "action": "domain:update",
        "object_kind": "domain",
        "object_id": None,
        "object_name": "research",
        "domain_id": None,
        "owner_id": None,
        "before": None,
        "after": {"n": seq},
        "result": "success",
        "code": "",
        "message": "",
        "duration_ms": 1.5,
    }
    return Entry(**{**usual, **changes})


Rows = list[tuple[Entry, str]]


def make_chain(count: int, start: int = 1) -> Rows:
    rows: Rows = []
    last = GENESIS
    for seq in range(start, start + count):
        row = make_row(seq)
        last = chain(KEY, last, row)
        rows.append((row, last))
    return rows


def head_of(rows: Rows) -> Head:
    return Head(seq=rows[-1][0].seq, hash=rows[-1][1])


def find(
    rows: Rows, head: Head | None = None, exported: dict[int, Head] | None = None
) -> list[tuple[int, str]]:
    check = ChainCheck(KEY, exported or {})
    for row, stored in rows:
        check.follow(row, stored)
    return [(b.seq, b.kind) for b in check.end(head)]


# --- the chain -------------------------------------------------------------------


def test_a_chain_that_nobody_has_touched_has_no_break():
    rows = make_chain(5)
    assert find(rows, head_of(rows), {3: Head(seq=3, hash=rows[2][1])}) == []
    assert find([], None) == find([], Head(seq=0, hash=GENESIS)) == []


@pytest.mark.parametrize("name", Entry.__struct_fields__)
def test_whatever_is_changed_in_a_row_that_row_is_named(name: str):
    rows = make_chain(5)
    other: dict[type, Any] = {str: "x", dict: {"n": 0}, float: 2.0, datetime: NOON}
    old = getattr(rows[2][0], name)
    new = other.get(type(old), "x")
    if name == "at":
        new = NOON + timedelta(microseconds=1)
    if name == "seq":
        rows[2] = (msgspec.structs.replace(rows[2][0], seq=9), rows[2][1])
        assert (3, "missing") in find(rows, head_of(rows))
        return
    rows[2] = (msgspec.structs.replace(rows[2][0], **{name: new}), rows[2][1])
    assert find(rows, head_of(rows)) == [(3, "altered")]


def test_a_hash_that_was_changed_is_named_and_not_the_row_behind_it():
    rows = make_chain(5)
    rows[2] = (rows[2][0], "0" * 64)
    assert find(rows, head_of(rows)) == [(3, "altered")]


def test_a_forged_row_with_a_hash_of_its_own_does_not_fit():
    rows = make_chain(3)
    forged = make_row(4, actor="mallory")
    rows.append((forged, chain(b"another key", rows[-1][1], forged)))
    assert find(rows, head_of(rows)) == [(4, "altered")]


def test_rows_that_were_taken_out_are_named():
    rows = make_chain(9)
    head = head_of(rows)
    assert find(rows[:3] + rows[4:], head) == [(4, "missing")]
    assert find(rows[2:], head) == [(1, "missing")]
    assert find(rows[:6], head) == [(7, "missing")]
    assert find([], head) == [(1, "missing")]


def test_rows_whose_contents_changed_places_are_both_named():
    rows = make_chain(5)
    swapped = list(rows)
    swapped[1] = (msgspec.structs.replace(rows[2][0], seq=2), rows[2][1])
    swapped[2] = (msgspec.structs.replace(rows[1][0], seq=3), rows[1][1])
    assert {seq for seq, _ in find(swapped, head_of(rows))} >= {2, 3}


def test_a_tail_that_was_taken_away_with_its_head_shows_in_what_was_exported():
    rows = make_chain(9)
    exported = {8: Head(seq=8, hash=rows[7][1], at="noon")}
    assert find(rows[:5], head_of(rows[:5])) == []  # nothing in the database tells
    assert find(rows[:5], head_of(rows[:5]), exported) == [(6, "truncated")]
    assert find([], None, exported)[-1] == (1, "truncated")


def test_a_chain_written_anew_by_somebody_with_the_key_shows_in_what_was_exported():
    rows = make_chain(4)
    exported = {3: Head(seq=3, hash="1" * 64, at="noon")}
    assert find(rows, head_of(rows), exported) == [(3, "replaced")]


def test_a_head_that_is_gone_or_another_ones_is_named():
    rows = make_chain(4)
    assert find(rows, None) == [(4, "head")]
    assert find(rows, Head(seq=3, hash=rows[2][1])) == [(4, "head")]
    assert find(rows, Head(seq=4, hash="1" * 64)) == [(4, "head")]


def test_a_clock_that_went_back_breaks_nothing():
    last = GENESIS
    rows: Rows = []
    for seq, hours in ((1, 5), (2, -9), (3, 0)):
        row = make_row(seq, at=NOON + timedelta(hours=hours))
        last = chain(KEY, last, row)
        rows.append((row, last))
    assert find(rows, head_of(rows)) == []


def test_breaks_are_counted_on_when_there_are_too_many_to_list():
    check = ChainCheck(KEY, {})
    for row, _ in make_chain(1200):
        check.follow(row, "0" * 64)
    assert len(check.end(Head(seq=1200, hash="0" * 64))) == 1000
    assert check.found == 1200


def test_the_encoding_does_not_depend_on_where_a_row_was_read():
    row = make_row(before={"b": 1, "a": {"y": [1], "x": None}}, duration_ms=0.1 + 0.2)
    moved = msgspec.structs.replace(
        row,
        before={"a": {"x": None, "y": [1]}, "b": 1},
        at=NOON.astimezone(timezone(timedelta(hours=9))),
        duration_ms=0.3,
    )
    assert canonical(row) == canonical(moved)


def test_two_rows_never_have_one_encoding():
    one = make_row(actor="ab", acted_as="c")
    other = make_row(actor="a", acted_as="bc")
    assert canonical(one) != canonical(other)
    assert canonical(make_row(before=None)) != canonical(make_row(before={}))
    assert canonical(make_row(object_id=None)) != canonical(make_row(object_id="None"))


def test_the_key_of_the_chain_is_not_the_one_it_is_derived_from():
    assert derive_audit_key(b"x") != derive_audit_key(b"y")
    assert derive_audit_key(b"x") != b"x"
    assert len(derive_audit_key(b"x")) == 32


# --- what is written -------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "Secret",
        "password",
        "new_password",
        "oldPassword",
        "token",
        "wsproxy_api_token",
        "JUPYTERHUB_API_TOKEN",
        "tokens",
        "apiKey",
        "API_KEY",
        "secret-key",
        "secretKey",
        "private_key",
        "Authorization",
        "set-cookie",
        "passphrase",
        "credentials",
        "environ",
    ],
)
def test_a_field_that_is_named_like_a_secret_is_one(name: str):
    assert is_secret(name)
    assert redact({name: CANARY}) == {name: HIDDEN}


@pytest.mark.parametrize(
    "name", ["name", "key", "keypair", "secretary", "tokenizer", "description"]
)
def test_other_fields_are_none(name: str):
    assert redact({name: "x"}) == {name: "x"}


def test_that_there_is_a_secret_may_be_written():
    assert redact({"has_secret": True, "secret": None}) == {
        "has_secret": True,
        "secret": None,
    }


_NAMES = st.text(string.ascii_letters + "_-", max_size=12)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_TREES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
_SECRETS = st.sampled_from(["secret", "apiToken", "NEW_PASSWORD", "cookie", "environ"])
_HIDING = st.recursive(
    st.just(CANARY),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2)
        | st.dictionaries(_NAMES, inner, min_size=1, max_size=2)
    ),
    max_leaves=6,
)


@given(path=st.lists(_NAMES, max_size=5), name=_SECRETS, value=_HIDING)
def test_no_secret_gets_through_wherever_it_is(path: list[str], name: str, value: Any):
    document: dict[str, Any] = {name: value}
    for step in path:
        document = {step: [document]}
    entry = make_entry(
        Act(action="a", object_kind="k", object_name="n", before=document),
        None,
        seq=1,
        at=NOON,
    )
    assert CANARY not in canonical(entry).decode()


@given(document=st.dictionaries(st.text(max_size=8), _TREES, max_size=5))
def test_what_is_written_is_the_same_when_it_is_read_back(document: dict[str, Any]):
    written = redact(document)
    assert msgspec.json.decode(msgspec.json.encode(written)) == written
    assert redact(written) == written
    assert "\\u0000" not in canonical(make_row(before=written)).decode()


def test_numbers_that_a_database_would_give_back_differently_are_texts():
    written = redact({"a": 1e300, "b": 1 << 70, "c": 2.0, "d": 0.1, "e": float("nan")})
    assert written == {"a": "1e+300", "b": str(1 << 70), "c": 2, "d": 0.1, "e": "nan"}
    assert type(written["c"]) is int


def test_of_a_script_only_size_and_fingerprint_are_written():
    before = redact({"bootstrap_script": f"#!/bin/sh\nTOKEN={CANARY}\n"})
    after = redact({"bootstrap_script": f"#!/bin/sh\nTOKEN={CANARY}!\n"})
    assert before is not None
    assert CANARY not in str(before)
    assert before["bootstrap_script"].startswith("(")
    assert before != after
    assert CANARY not in str(redact({"text": CANARY * 200}))


@example("a\u2028b\u2029c\x85d\x0be\x7f")
@given(st.text())
def test_no_line_has_a_control_character(text: str):
    shown = clean_text(text)
    assert len(shown) <= MOST_TEXT
    assert shown.splitlines() in ([], [shown])
    assert not any(c < " " or "\x7f" <= c < "\xa0" for c in shown)


def test_what_would_turn_text_around_is_not_written():
    assert clean_text("user\u202egnp.exe") == "user\N{REPLACEMENT CHARACTER}gnp.exe"
    assert clean_text("é 漢字 👩‍🔬") == "é 漢字 👩‍🔬"


def test_a_login_in_an_address_is_not_written():
    sent = f"https://robot:{CANARY}@registry.example/v2"
    assert clean_text(f"cannot reach {sent}").endswith("https://…@registry.example/v2")
    assert CANARY not in str(redact({"url": sent}))


def test_every_column_has_room_for_what_is_written():
    long = "x" * 5000
    entry = make_entry(
        Act(
            action=long,
            object_kind=long,
            object_name=long,
            object_id=long,
            code=long,
            message=long,
        ),
        Asking(
            request_id=long,
            address=long,
            elapsed=lambda: -1.0,
            actor=long,
            acted_as=long,
            credential=long,
        ),
        seq=1,
        at=NOON,
    )
    assert (len(entry.action), len(entry.object_kind), len(entry.code)) == (64, 32, 64)
    assert (len(entry.actor), len(entry.object_name)) == (256, 512)
    assert entry.object_id is None
    assert entry.duration_ms == 0


def test_who_really_asks_and_for_whom_are_both_written():
    asking = Asking(
        request_id="r",
        address="10.0.0.9",
        elapsed=lambda: 0.0123456,
        actor="root",
        actor_id="root-id",
        acted_as="grace",
        acted_as_id="grace-id",
        credential="hub",
        domain_id="d",
    )
    act = Act(action="a", object_kind="k", object_name="n")
    entry = make_entry(act, asking, seq=1, at=NOON)
    assert (entry.actor, entry.actor_id, entry.acted_as) == ("root", "root-id", "grace")
    assert (entry.owner_id, entry.domain_id) == ("grace-id", "d")
    assert entry.duration_ms == 12.346
    own = msgspec.structs.replace(act, owner_id="o", domain_id="e")
    assert make_entry(own, asking, seq=1, at=NOON).owner_id == "o"
    assert make_entry(own, asking, seq=1, at=NOON).domain_id == "e"
    assert make_entry(act, None, seq=1, at=NOON).actor == "system"


def test_looking_is_no_change_and_doing_is():
    assert is_change("domain:update", "PATCH")
    assert is_change("image:install", "POST")
    assert not is_change("domain:update", "GET")
    assert not is_change("account:check", "POST")
    assert not is_change("image:installs", "POST")


# --- limits ----------------------------------------------------------------------


def judge(
    limiter: RefusalLimiter, who: str, address: str, times: int, now: datetime = NOON
) -> list[Verdict]:
    return [limiter.judge(who, address, now) for _ in range(times)]


def test_a_loop_of_refusals_ends_with_a_row_that_says_so():
    said = judge(RefusalLimiter(), "ada", "a", MOST_OF_PERSON + 5)
    assert said[: MOST_OF_PERSON - 1] == [Verdict.WRITE] * (MOST_OF_PERSON - 1)
    assert said[MOST_OF_PERSON - 1 :] == [Verdict.LAST] + [Verdict.LEAVE] * 5


def test_strangers_share_less_by_address_and_all_together():
    limiter = RefusalLimiter()
    said = judge(limiter, "", "a", MOST_FROM_ADDRESS + 1)
    assert said[-2:] == [Verdict.LAST, Verdict.LEAVE]
    for number in range(MOST_OF_STRANGERS // MOST_FROM_ADDRESS - 1):
        assert Verdict.LEAVE not in judge(limiter, "", f"b{number}", MOST_FROM_ADDRESS)
    assert judge(limiter, "", "fresh", 1) == [Verdict.LEAVE]
    assert judge(limiter, "ada", "fresh", 1) == [Verdict.WRITE]


def test_after_a_while_refusals_are_written_again():
    limiter = RefusalLimiter()
    judge(limiter, "", "a", MOST_FROM_ADDRESS + 1)
    later = NOON + WINDOW
    assert judge(limiter, "", "a", 1, later) == [Verdict.WRITE]


def test_made_up_addresses_do_not_fill_the_memory():
    limiter = RefusalLimiter(most_keys=10)
    for number in range(100):
        judge(limiter, f"u{number}", "a", 1)
    assert len(limiter._windows) <= 10


def test_a_keypair_logs_in_once_from_each_address():
    seen = SeenKeys()
    assert [seen.is_new("k", a) for a in ("a", "a", "b", "a")] == [
        True,
        False,
        True,
        False,
    ]


# --- heads outside of the database -----------------------------------------------


def test_heads_are_kept_in_lines_closed_to_others(tmp_path: Path):
    path = tmp_path / "audit" / "heads.jsonl"
    file = HeadFile(str(path))
    assert file.read() == ({}, 0)
    heads = [Head(seq=n, hash=str(n) * 64, at="t") for n in (3, 7)]
    for head in heads:
        file.append(head)
    assert file.read() == ({3: heads[0], 7: heads[1]}, 0)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_line_cut_off_by_a_crash_spoils_nothing(tmp_path: Path):
    path = tmp_path / "heads.jsonl"
    file = HeadFile(str(path))
    file.append(Head(seq=1, hash="a"))
    with path.open("ab") as raw:
        raw.write(b'{"seq":2,"ha')
    assert file.read() == ({1: Head(seq=1, hash="a")}, 0)
    file.append(Head(seq=3, hash="c"))
    assert set(file.read()[0]) == {1, 3}
    assert file.read()[1] == 0


def test_a_line_that_somebody_has_spoilt_is_counted(tmp_path: Path):
    path = tmp_path / "heads.jsonl"
    path.write_bytes(b'{"seq":1,"hash":"a","at":""}\nnonsense\n\xff\n')
    heads, unreadable = HeadFile(str(path)).read()
    assert (set(heads), unreadable) == ({1}, 2)


# --- CSV -------------------------------------------------------------------------


def shown(**changes: Any) -> AuditEntry:
    usual = msgspec.structs.asdict(make_row())
    return AuditEntry(**{**usual, "at": "t", "domain": None, "hash": "h", **changes})


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "＝1", '=HYPERLINK("http://x")']
)
def test_no_cell_is_a_formula(name: str):
    text = _csv([shown(object_name=name, actor=name)])
    [row] = csv.reader(io.StringIO(text))
    assert row.count(f"'{name}") == 2
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "＝")) for cell in row)


def test_commas_and_quotes_stay_in_their_cell():
    [row] = csv.reader(io.StringIO(_csv([shown(object_name='a,"b"', after={"x": 1})])))
    assert 'a,"b"' in row
    assert '{"x":1}' in row
