"""What a session gets of what its image needs, its owner asks, and nobody says."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.images import Image
from backendai_hub.core.objections import AllObjections
from backendai_hub.core.slots import parse_slots
from backendai_hub.operations.platform import Settings
from backendai_hub.operations.request_amounts import check_accelerators, resolve_amounts

PLATFORM = SimpleNamespace(settings=Settings(default_cpu=1000, default_memory=3))


def make_image(**changes):
    values = {"name": "lab", "references": {}, "shmem": "0", **changes}
    return Image(**values)


def resolve(image, shmem=None, **slots):
    request = SessionRequest(image=image.name, slots=slots, shmem=shmem)
    return resolve_amounts(PLATFORM, image, request)


small = st.integers(0, 6)
some = st.integers(1, 6)


@given(
    least_cpu=some,
    least_mem=some,
    own_shmem=small,
    shmem=st.none() | small,
    cpu=st.none() | some,
    mem=st.none() | some,
)
def test_a_session_fits_its_image_or_is_refused_in_words(
    least_cpu, least_mem, own_shmem, shmem, cpu, mem
):
    image = make_image(
        minimum={"cpu": str(least_cpu), "mem": str(least_mem)}, shmem=str(own_shmem)
    )
    asked = {"cpu": cpu, "mem": mem}
    slots = {slot: str(amount) for slot, amount in asked.items() if amount is not None}
    shared = own_shmem if shmem is None else shmem
    needed = least_mem + shared  # shared memory comes on top
    fits = (cpu is None or cpu >= least_cpu) and (mem is None or mem >= needed)
    if fits:
        got, got_shmem = resolve(image, text(shmem), **slots)
        assert got["cpu"] == 1000 * (cpu or least_cpu)
        assert got["mem"] == (needed if mem is None else mem)
        assert got_shmem == shared < got["mem"]
    else:
        with pytest.raises(InvalidRequestError) as told:
            resolve(image, text(shmem), **slots)
        slot = told.value.message.partition(":")[0]
        asks, least = (cpu, least_cpu) if slot == "cpu" else (mem, needed)
        assert re.fullmatch(
            rf"{slot}: {asks}\b.* less than lab needs.*; ask for at least {least}\b.*",
            told.value.message,
        )


def text(amount):
    return None if amount is None else str(amount)


@given(mem=some, shmem=small)
def test_shared_memory_leaves_room_for_the_rest(mem, shmem):
    image = make_image()
    if shmem < mem:
        assert resolve(image, str(shmem), mem=str(mem))[1] == shmem
    else:
        with pytest.raises(InvalidRequestError, match="leaves nothing of"):
            resolve(image, str(shmem), mem=str(mem))


@given(least=some, most=some, asked=some)
def test_an_image_has_a_most_as_well_as_a_least(least, most, asked):
    image = make_image(
        minimum={"cuda.device": str(least)}, maximum={"cuda.device": str(most)}
    )
    request = {"cuda.device": str(asked), "mem": "4"}
    if least <= asked <= most:
        assert resolve(image, **request)[0]["cuda.device"] == asked * 1000
    else:
        with pytest.raises(InvalidRequestError, match=r"^cuda\.device: "):
            resolve(image, **request)


def test_what_is_below_the_least_is_told_with_both_amounts():
    image = make_image(minimum={"mem": "2g"}, shmem="1g")
    with pytest.raises(InvalidRequestError) as told:
        resolve(image, mem="2g")
    assert "mem: 2" in told.value.message
    assert "at least 3" in told.value.message


def test_without_a_word_from_anybody_the_sites_usual_amounts_are_given():
    assert dict(resolve(make_image())[0]) == {"cpu": 1000, "mem": 3}


@pytest.mark.parametrize(
    "slot", ["cuda.device", "cuda.shares", "cuda.device:1g.10gb", "cpu", "mem"]
)
def test_an_image_is_given_the_accelerators_it_is_made_for(slot):
    assert refusals(["tpu", "cuda"], slot) == []


def test_an_image_is_not_given_accelerators_it_is_not_made_for():
    assert refusals(["cuda", "tpu"], "rocm.device") == [
        "rocm.device: lab is made for cuda, tpu, not for rocm; leave it out, or choose"
        " another environment"
    ]


def test_each_accelerator_it_is_not_made_for_is_told():
    told = refusals(["cuda"], "rocm.device", "cpu", "cuda.device", "ipu.device")
    assert [text.partition(":")[0] for text in told] == ["ipu.device", "rocm.device"]


def test_a_kind_stands_for_its_models_and_for_nothing_that_only_begins_alike():
    assert refusals(["tt"], "tt-n300.device") == []
    assert refusals(["tt"], "ttx.device")
    assert refusals(["tt-n300"], "tt.device")


def test_an_image_that_names_no_accelerators_is_given_any():
    assert refusals([], "cuda.device", "rocm.device") == []


def test_none_of_an_accelerator_is_no_accelerator():
    assert refusals(["cuda"], **{"rocm.device": "0"}) == []


@pytest.mark.parametrize("said", ["minimum", "preferred"])
def test_what_an_image_asks_for_itself_is_never_held_against_it(said):
    some, none = ({said: {"rocm.device": amount}} for amount in "10")
    assert refusals(["cuda"], "rocm.device", image=some) == []
    assert refusals(["cuda"], "rocm.device", image=none)


def test_of_an_accelerator_that_there_is_not_nothing_more_is_said():
    image = make_image(accelerators=["cuda"])
    check_accelerators(image, parse_slots({"cdua.device": 1}), ["cuda.device"])


def refusals(accelerators, *slots, image=None, **amounts):
    """List what is refused of an image for one of each of these, or so many."""
    objections = AllObjections()
    asked = dict.fromkeys(slots, 1) | amounts
    made = make_image(accelerators=accelerators, **(image or {}))
    check_accelerators(made, parse_slots(asked), asked, objections)
    return [error.message for error in objections.found]
