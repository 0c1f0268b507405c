"""Amounts of resources: read once at the edge, exact from then on."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.slots import (
    LARGEST,
    MILLI,
    ResourceSlots,
    SlotType,
    describe_amount,
    format_amount,
    parse_amount,
    parse_slots,
    slot_type,
)

NAMES = st.sampled_from(["cpu", "mem", "cuda.device", "cuda.shares", "gpu.mem"])
BAGS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)).map(ResourceSlots)


@pytest.mark.parametrize(
    ("slot", "written", "amount"),
    [
        ("cpu", "2", 2000),
        ("cpu", 2, 2000),
        ("cpu", 0.5, 500),
        ("cpu", "0.001", 1),
        ("cpu", " 4 ", 4000),
        ("cpu", "1.0000", 1000),
        ("cuda.shares", "0.25", 250),
        ("mem", "0", 0),
        ("mem", "1024", 1024),
        ("mem", 1024, 1024),
        ("mem", "1k", 1 << 10),
        ("mem", "1.5g", 3 << 29),
        ("mem", "16g", 16 << 30),
        ("mem", "16G", 16 << 30),
        ("mem", "16gb", 16 << 30),
        ("mem", "16GB", 16 << 30),
        ("mem", "16GiB", 16 << 30),
        ("mem", "512MiB", 512 << 20),
        ("mem", "1t", 1 << 40),
        ("mem", "1p", 1 << 50),
        ("shmem", "64m", 64 << 20),
    ],
)
def test_amounts_are_read_as_people_write_them(slot, written, amount):
    assert parse_amount(slot, written) == amount


@pytest.mark.parametrize(
    "written",
    [
        float("nan"),
        "NaN",
        "sNaN",
        float("inf"),
        float("-inf"),
        "Infinity",
        "-1",
        -1,
        -0.5,
        "1e309",
        1e309,
        "1e3",
        1e22,
        10**18,
        10**5000,
        -(10**5000),
        "9" * 39,
        "9" * 41,
        "1" * 100_000,
        "",
        " ",
        ".",
        "1.",
        ".5",
        "+1",
        "1_000",
        "1,5",
        "0x10",
        "1 0",
        "१२",
        "１",
        "1\n2",
        "1g",
        "two",
    ],
    ids=lambda v: repr(v)[:20] if not isinstance(v, int) else "an integer",
)
def test_what_is_no_count_is_refused_by_name(written):
    with pytest.raises(InvalidRequestError, match=r"^cpu: "):
        parse_amount("cpu", written)


@pytest.mark.parametrize(
    "written",
    ["-1g", "g", "1x", "1gg", "1ig", "1 g", "nan", "inf", "1e9", "16384p", "1e309"],
)
def test_what_is_no_size_is_refused_by_name(written):
    with pytest.raises(InvalidRequestError, match=r"^mem: "):
        parse_amount("mem", written)


@pytest.mark.parametrize("written", [True, False, None, [], {}, b"1", 1j])
def test_what_is_neither_number_nor_text_is_refused_by_its_type(written):
    with pytest.raises(InvalidRequestError, match=type(written).__name__):
        parse_amount("cpu", written)


@pytest.mark.parametrize(
    ("slot", "written", "unit"),
    [
        ("cpu", "0.0001", "thousandths"),
        ("cpu", 0.1 + 0.2, "thousandths"),
        ("cuda.shares", "0.33333", "thousandths"),
        ("cpu", "1.0000000000000000000000000000000000001", "thousandths"),
        ("mem", "0.5", "whole bytes"),
        ("mem", "0.0001k", "whole bytes"),
    ],
)
def test_an_amount_finer_than_the_smallest_unit_is_refused_not_rounded(
    slot, written, unit
):
    with pytest.raises(InvalidRequestError, match=f"finer than {unit}"):
        parse_amount(slot, written)


def test_the_largest_amount_is_the_last_that_is_taken():
    assert parse_amount("mem", str(LARGEST)) == LARGEST
    with pytest.raises(InvalidRequestError, match="more than any system"):
        parse_amount("mem", str(LARGEST + 1))


def test_a_refusal_does_not_repeat_megabytes():
    with pytest.raises(InvalidRequestError) as refused:
        parse_amount("cpu", "1" * 1_000_000)
    assert len(refused.value.message) < 200


@given(NAMES, st.integers(0, 3 * MILLI) | st.integers(0, LARGEST))
def test_what_is_written_is_read_back_exactly(name, amount):
    assert parse_amount(name, format_amount(name, amount)) == amount


@given(NAMES, st.text(max_size=50) | st.floats() | st.integers())
def test_reading_answers_with_an_exact_amount_or_a_refusal(name, written):
    try:
        amount = parse_amount(name, written)
    except InvalidRequestError as refusal:
        message = refusal.message
    else:
        assert isinstance(amount, int)
        assert 0 <= amount <= LARGEST
        return
    assert message.startswith(f"{name}: ")


@given(st.integers(0, 10**6))
def test_thousandths_are_never_off_by_one(thousandths):
    written = f"{thousandths // MILLI}.{thousandths % MILLI:03d}"
    assert Fraction(parse_amount("cpu", written), MILLI) == Fraction(written)
    assert parse_amount("cpu", thousandths / MILLI) == thousandths


@given(st.dictionaries(NAMES, st.integers(1, LARGEST)))
def test_a_request_survives_being_shown_to_its_user(amounts):
    slots = ResourceSlots(amounts)
    assert parse_slots(slots.to_text()) == slots


@pytest.mark.parametrize(
    ("slot", "amount", "written", "said"),
    [
        ("cpu", 0, "0", "0"),
        ("cpu", 1, "0.001", "0.001"),
        ("cpu", 500, "0.5", "0.5"),
        ("cpu", 1500, "1.5", "1.5"),
        ("cpu", 2000, "2", "2"),
        ("mem", 0, "0", "0 bytes"),
        ("mem", 1023, "1023", "1023 bytes"),
        ("mem", 1024, "1k", "1 KiB"),
        ("mem", 1536 << 20, "1536m", "1.5 GiB"),
        ("mem", 16 << 30, "16g", "16 GiB"),
        ("mem", (16 << 30) - 1, "17179869183", "15.9 GiB"),
        ("mem", 1 << 40, "1t", "1 TiB"),
        ("mem", 1 << 50, "1p", "1 PiB"),
        ("mem", 1536 << 50, "1536p", "1.5 EiB"),
        ("mem", 1 << 60, "1e", "1 EiB"),
    ],
)
def test_amounts_are_written_for_programs_and_for_people(slot, amount, written, said):
    assert format_amount(slot, amount) == written
    assert describe_amount(slot, amount) == said


@pytest.mark.parametrize(
    "name",
    ["cpu", "mem", "cuda.device", "cuda.shares", "cuda.device:10g-mig", "atom-plus.x"],
)
def test_slot_names_follow_the_convention(name):
    assert list(parse_slots({name: 1})) == [name]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "CPU",
            "cpu ",
            "cpu\n",
            "1cpu",
            "cpu.",
            ".cpu",
            "a.b.c",
            "cuda:10g",
            "ａ",
        ),
        *("x" * 33, "cuda.device:" + "x" * 32, "cuda device", "<b>", "x" * 10_000),
    ],
)
def test_other_names_are_refused_in_few_words(name):
    with pytest.raises(InvalidRequestError, match="not a slot name") as refused:
        parse_slots({name: 1})
    assert len(refused.value.message) < 300


def test_shared_memory_is_not_a_slot_and_the_refusal_says_where_it_belongs():
    with pytest.raises(InvalidRequestError, match="field 'shmem'"):
        parse_slots({"shmem": "1g"})


def test_a_request_names_a_sensible_number_of_slots():
    parse_slots({f"slot{i}": 1 for i in range(64)})
    with pytest.raises(InvalidRequestError, match="65 slots"):
        parse_slots({f"slot{i}": 1 for i in range(65)})


def test_memory_is_counted_in_bytes_and_all_else_in_thousandths():
    assert {n: slot_type(n) for n in ("mem", "gpu.mem", "shmem", "cpu", "memory")} == {
        "mem": SlotType.BYTES,
        "gpu.mem": SlotType.BYTES,
        "shmem": SlotType.BYTES,
        "cpu": SlotType.COUNT,
        "memory": SlotType.COUNT,
    }


def test_a_slot_that_is_not_named_counts_as_zero():
    slots = ResourceSlots({"cpu": 1000, "mem": 0})
    assert slots["cuda.device"] == slots["mem"] == 0
    assert list(slots) == ["cpu"]
    assert "mem" not in slots
    assert slots == ResourceSlots({"cpu": 1000})
    assert hash(slots) == hash(ResourceSlots({"cpu": 1000}))
    assert slots != {"cpu": 1000}


@given(BAGS, BAGS, BAGS)
def test_bags_add_and_subtract_like_numbers(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a - a == ResourceSlots()


@given(BAGS, BAGS)
def test_a_request_fits_if_nothing_would_go_below_zero(asked, free):
    assert asked.fits_in(free) == all(v >= 0 for v in (free - asked).values())
