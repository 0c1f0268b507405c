"""What nouns are made of: how each kind of field is read, stored and shown."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.fields import (
    Choice,
    Document,
    Flag,
    HostPermission,
    Hosts,
    Kind,
    Line,
    Networks,
    Number,
    Numbers,
    Page,
    Rank,
    Reference,
    Size,
    Slots,
    Slug,
    Words,
    defaults_of,
    field,
    fields_of,
    given_fields,
    read_fields,
    request_type,
)
from backendai_hub.core.nouns import NOUNS


class Colour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form."""

    red: int = 0
    green: int = 0


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """A noun of this file."""

    id: str
    name: Annotated[str, field(Slug(), "Its name.")]
    owner: Annotated[str, field(Reference(noun="user"), "Whose it is.", once=True)]
    size: Annotated[str, field(Size(unlimited=True), "How large it is.")] = "1g"
    rank: Annotated[
        int, field(Number(least=1, most=9), "How good.", by=Rank.SUPERADMIN)
    ] = 5
    limits: Annotated[dict[str, str], field(Slots(), "How much.")] = {}
    seen_at: str | None = None


def refusal(kind: Kind, value: object) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        kind.read("f", value)
    assert refused.value.message.startswith("f: ")
    return refused.value.message


SLOTS_REFUSED = {
    "-1": "not negative",
    "NaN": "amount",
    "nan": "amount",
    "1e400": "",
    "9223372036854775808": "",
    "1.0001": "",
    "1,5": "",
    "0x10": "",
    "1 2": "",
    "": "",
    "１": "",
    "1_000": "",
}


@pytest.mark.parametrize("amount", sorted(SLOTS_REFUSED))
def test_what_is_no_amount_is_refused_with_its_slot(amount):
    for kind in (Slots(), Slots(limits=False)):
        assert "cpu" in refusal(kind, {"cpu": amount})


@pytest.mark.parametrize(
    "amount", [float("nan"), float("inf"), -0.5, 1e400, 2**63, -(2**63), 2**200]
)
def test_numbers_that_no_machine_has_are_refused(amount):
    assert "cpu" in refusal(Slots(limits=False), {"cpu": amount})


@pytest.mark.parametrize("amount", ["1zb", "10 parsecs", "1g1", "g", "-1g", "1e3g"])
def test_units_are_those_of_bytes(amount):
    assert "mem" in refusal(Slots(), {"mem": amount})


def test_amounts_of_memory_may_have_units_and_mean_powers_of_two():
    read = Slots().read("f", {"mem": "1.5g"})
    assert read == {"mem": 3 << 29}
    assert Slots().show(read) == {"mem": "1536m"}


@pytest.mark.parametrize("word", ["inf", "Infinity", "unlimited", "∞", None, " INF "])
def test_only_a_limit_may_be_infinite(word):
    assert Slots().read("f", {"cpu": word}) == {"cpu": None}
    assert Slots().show({"cpu": None}) == {"cpu": "inf"}
    assert "cpu" in refusal(Slots(limits=False), {"cpu": word or "inf"})


def test_a_limit_of_zero_is_kept_for_it_forbids():
    assert Slots().read("f", {"cpu": "0"}) == {"cpu": 0}


@pytest.mark.parametrize(
    "both", [("cuda.device", "cuda.shares"), ("cuda.device:10g-mig", "cuda.shares")]
)
def test_nobody_asks_for_whole_devices_and_shares_at_once(both):
    asked = dict.fromkeys(both, "1")
    assert "not for both" in refusal(Slots(limits=False), asked)
    assert set(Slots().read("f", asked)) == set(both), "a limit may name both"


@pytest.mark.parametrize(
    "slot", ["", "CPU ", "cuda..shares", "a\0b", "x" * 200, "../mem"]
)
def test_a_slots_name_is_checked(slot):
    refusal(Slots(), {slot: "1"})
    refusal(Slots(), {slot: None})


@given(
    st.dictionaries(
        st.sampled_from(["cpu", "mem", "cuda.shares"]), st.integers(0, 1 << 40)
    )
)
def test_what_is_shown_reads_back_as_it_was(amounts):
    kind = Slots()
    shown = kind.show(amounts)
    assert kind.read("f", shown) == dict(sorted(amounts.items()))


def test_sizes_are_bytes_and_unlimited_only_where_it_says_so():
    assert Size().read("f", "10g") == 10 << 30
    assert Size(unlimited=True).read("f", "-1") == -1
    assert Size(unlimited=True).read("f", "unlimited") == -1
    assert Size(unlimited=True).show(-1) == "-1"
    refusal(Size(), "-1")
    refusal(Size(), "unlimited")
    refusal(Size(unlimited=True), "-2")
    refusal(Size(unlimited=True), str(1 << 63))


@pytest.mark.parametrize("number", [0, 10, -1, 2**31, 2**63, 2**200])
def test_a_number_has_a_range(number):
    assert "from 1 to 9" in refusal(Number(least=1, most=9), number)


def test_a_number_is_left_out_only_where_that_means_something():
    assert Number(optional=True).read("f", None) is None
    assert "or null for no limit" in refusal(Number(optional=True), -1)
    assert "nothing will not do" in refusal(Number(), None)


def test_numbers_are_each_in_range_and_not_too_many():
    assert Numbers(least=1).read("f", [3, 1, 3]) == [3, 1]
    refusal(Numbers(least=1), [0])
    refusal(Numbers(), [2**63])
    assert "more than 64" in refusal(Numbers(), list(range(65)))


def test_a_choice_is_one_of_its_words_in_any_case():
    kind = Choice(of=("user", "superadmin"))
    assert kind.read("f", " SuperAdmin ") == "superadmin"
    assert "use one of user, superadmin" in refusal(kind, "root")
    assert len(refusal(kind, "x" * 1000)) < 200


@pytest.mark.parametrize(
    "network", ["10.0.0.1/8", "300.0.0.0", "any", "", "10.0.0.0/33", "::1/129", "1"]
)
def test_a_network_is_one(network):
    assert "such as 10.1.0.0/16" in refusal(Networks(), [network])


def test_networks_are_kept_in_their_normal_form():
    given_networks = ["127.0.0.1", " 10.1.0.0/16 ", "::1", "0:0:0:0:0:0:0:1"]
    assert Networks().read("f", given_networks) == [
        "127.0.0.1/32",
        "10.1.0.0/16",
        "::1/128",
    ]
    refusal(Networks(), ["::1"] * 65)


def test_hosts_name_permissions_there_are():
    every = sorted(map(str, HostPermission))
    assert Hosts().read("f", {"local": ["*"]}) == {"local": every}
    assert Hosts().read("f", {"local": []}) == {"local": []}
    hinted = refusal(Hosts(), {"local": ["mount-in-sesion"]})
    assert "did you mean 'mount-in-session'?" in hinted
    refusal(Hosts(), {"": ["*"]})
    refusal(Hosts(), {"a\0b": ["*"]})


def test_words_are_lines_without_repetition():
    assert Words().read("f", [" b ", "a", "b"]) == ["a", "b"]
    refusal(Words(), [""])
    refusal(Words(), ["a\nb"])
    refusal(Words(), ["x" * 257])
    assert "more than 256 entries" in refusal(Words(), [str(i) for i in range(257)])


def test_a_page_is_text_of_a_certain_size():
    assert Page(most=8).read("f", "é\né") == "é\né"
    assert "9 bytes; the most is 8" in refusal(Page(most=8), "ééééx")
    refusal(Page(), "a\0b")
    refusal(Page(), "a\ud800b")


def test_a_document_has_its_form_and_its_defaults():
    kind = Document(form=Colour, optional=True)
    assert kind.read("f", {"red": 1}) == {"red": 1, "green": 0}
    assert kind.read("f", None) is None
    assert Document(form=Colour).read("f", None) == {"red": 0, "green": 0}
    refusal(kind, {"blue": 1})
    refusal(kind, {"red": "1"})
    assert kind.show({"red": 1}) == {"red": 1, "green": 0}


def test_a_reference_names_something():
    assert Reference(noun="user", optional=True).read("f", None) is None
    for nothing in (None, "", "x" * 257):
        assert "name a user" in refusal(Reference(noun="user"), nothing)
    assert Reference(noun="user").column == "_id"


def test_a_creation_demands_what_has_no_default_and_a_change_nothing():
    create = request_type(Thing, change=False)
    change = request_type(Thing, change=True)
    assert given_fields(create(name="a", owner="b")) == {"name": "a", "owner": "b"}
    assert given_fields(change()) == {}
    with pytest.raises(TypeError):
        create(name="a")
    assert "owner" not in {f.name for f in msgspec.structs.fields(change)}, "once"
    assert "seen_at" not in {f.name for f in msgspec.structs.fields(create)}


@pytest.mark.parametrize(
    "body", ['{"name":"a","owner":"b","id":"x"}', '{"name":"a","owner":"b","sise":"1"}']
)
def test_a_body_holds_no_other_fields(body):
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(body, type=request_type(Thing, change=False))


def test_every_field_that_is_wrong_is_reported_at_once():
    with pytest.raises(InvalidRequestError) as refused:
        read_fields(
            Thing,
            {
                "name": "-",
                "owner": "",
                "size": "huge",
                "rank": 10,
                "limits": {"cpu": "x"},
            },
            change=False,
        )
    errors = refused.value.fields["errors"]
    assert [e["field"] for e in errors] == ["name", "owner", "size", "rank", "limits"]
    for error in errors:
        assert error["message"] in refused.value.message


def test_what_is_left_out_gets_its_default_when_created_and_stays_when_changed():
    created = read_fields(Thing, {"name": "a", "owner": "b"}, change=False)
    assert created == {
        "name": "a",
        "owner": "b",
        "size": 1 << 30,
        "rank": 5,
        "limits": {},
    }
    assert read_fields(Thing, {"rank": 3}, change=True) == {"rank": 3}


@pytest.mark.parametrize("noun", NOUNS, ids=lambda n: n.name)
def test_every_noun_can_be_told_from_its_fields(noun):
    declared = fields_of(noun.shown)
    shown = {f.name for f in msgspec.structs.fields(noun.shown)}
    assert set(declared) <= shown
    for name, one in declared.items():
        assert one.help.endswith("."), (
            f"{noun.name}.{name}: a sentence for the reference"
        )
    for name in (*noun.filters, *(s for s in noun.sorts if s != "name")):
        assert name in shown, f"{noun.name} is filtered or sorted by {name}"


@pytest.mark.parametrize("noun", NOUNS, ids=lambda n: n.name)
def test_the_defaults_of_a_noun_are_values_its_fields_take(noun):
    for name, default in defaults_of(noun.shown).items():
        if name in fields_of(noun.shown) and not isinstance(
            fields_of(noun.shown)[name].kind, Flag
        ):
            fields_of(noun.shown)[name].kind.read(name, default)


def test_a_line_takes_any_script():
    assert Line(most=5).read("f", "日本語") == "日本語"
