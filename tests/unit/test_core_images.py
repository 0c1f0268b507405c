"""Environments as administrators write them down."""

import msgspec
import pytest

from backendai_hub.app import HubService
from backendai_hub.core.images import Image
from backendai_hub.core.slots import parse_amount, parse_slots

SHIPPED = [msgspec.convert(dict(i), Image) for i in HubService().images]


def test_an_environment_needs_a_name_and_what_runtimes_call_it():
    for lacking in ({"name": "lab"}, {"references": {"docker": "lab:1"}}):
        with pytest.raises(msgspec.ValidationError, match="missing required field"):
            msgspec.convert(lacking, Image)


def test_amounts_are_text_so_that_no_float_gets_in():
    with pytest.raises(msgspec.ValidationError, match="minimum"):
        msgspec.convert({"name": "a", "references": {}, "minimum": {"cpu": 0.5}}, Image)


def test_environments_do_not_share_what_they_do_not_say():
    one, other = (Image(name=n, references={}) for n in "ab")
    one.minimum["cpu"] = "1"
    assert other.minimum == {}


@pytest.mark.parametrize("image", SHIPPED, ids=lambda i: i.name)
def test_what_is_shipped_can_be_given_to_anybody(image: Image):
    """Its usual amounts are not below its least, and shared memory fits into both."""
    minimum, preferred = parse_slots(image.minimum), parse_slots(image.preferred)
    for slot, least in minimum.items():
        assert preferred[slot] == 0 or preferred[slot] >= least
    assert 0 <= parse_amount("shmem", image.shmem) < minimum["mem"]
    assert image.references
