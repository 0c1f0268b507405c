"""What becomes of an image in a registry, and of an administrator's word about it."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.images import merge_minimum
from backendai_hub.core.references import find_registry, host_of, is_reference
from backendai_hub.db.image_views import is_held
from backendai_hub.operations.found_images import (
    describe_found,
    find_changes,
    read_owner,
)
from backendai_hub.registries.manifests import FoundImage

KNOWN = {"cpu": "count", "mem": "bytes", "cuda.device": "count"}
DIGEST = f"sha256:{'a' * 64}"
GIB = 1 << 30


def make_found(labels=None, **changes):
    values = {
        "repository": "team/lab",
        "tag": "1",
        "digest": DIGEST,
        "config_digest": f"sha256:{'b' * 64}",
        "architecture": "x86_64",
        "size_bytes": 1,
        "labels": labels or {},
    }
    return FoundImage(**{**values, **changes})


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://cr.example.org", "cr.example.org"),
        ("https://cr.example.org:443/", "cr.example.org"),
        ("https://CR.example.org:5000", "cr.example.org:5000"),
        ("http://cr.example.org", "cr.example.org"),
        ("http://cr.example.org:80", "cr.example.org:80"),
        ("http://localhost:5000", "localhost:5000"),
        ("https://localhost", "localhost"),
        ("https://[::1]:5000", "[::1]:5000"),
        ("https://docker.io", "docker.io"),
        ("https://registry-1.docker.io", "docker.io"),
        # Without its port engines would take it for a folder of the usual registry.
        ("https://registry", "registry:443"),
        ("http://registry", "registry:80"),
        ("https://registry:70000", ""),
        ("https://[broken", ""),
    ],
)
def test_references_name_a_registry_by_its_host(url, host):
    assert host_of(url) == host


@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(["registry", "cr.example.org", "localhost", "[::1]", "10.0.0.1"]),
    st.sampled_from(["", ":80", ":443", ":5000"]),
)
def test_what_is_named_after_a_registry_is_looked_for_there(scheme, name, port):
    host = host_of(f"{scheme}://{name}{port}")
    reference = f"{host}/team/lab@{DIGEST}"
    assert is_reference(reference)
    assert find_registry(reference) == host


def test_an_image_for_inference_is_a_service():
    found = describe_found(
        "cr.example.org", make_found({"ai.backend.role": "INFERENCE"}), KNOWN
    )
    assert found["type"] == "service"


def test_an_unknown_resource_is_named_with_a_hint():
    labels = {"ai.backend.resource.min.cuda.devices": "1"}
    with pytest.raises(InvalidRequestError, match=r"min\.cuda\.devices.*cuda\.device'"):
        describe_found("cr.example.org", make_found(labels), KNOWN)


def test_an_owner_is_a_user_or_nobody():
    label = "ai.backend.customized-image.owner"
    user = "00000000-0000-4000-8000-00000000000A"
    assert read_owner({}) is None
    assert read_owner({label: f"user:{user}"}) == user.lower()
    for told in ("", "user:", "user:alice", f"project:{user}", user):
        with pytest.raises(InvalidRequestError):
            read_owner({label: told})


def test_shared_memory_follows_the_image_until_an_administrator_sets_it():
    label = "ai.backend.resource.preferred.shmem"
    old = describe_found("h.example", make_found({label: "64m"}), KNOWN)
    new = describe_found("h.example", make_found({label: "1g"}), KNOWN)
    row = {**old, "minimum": old["label_minimum"]}
    assert find_changes(row, new)["shmem"] == GIB
    assert "shmem" not in find_changes({**row, "shmem": 5}, new)
    assert find_changes(row, old) == {}


amounts = st.dictionaries(
    st.sampled_from(["cpu", "mem", "gpu"]), st.integers(1, 4), max_size=3
)


@given(amounts, amounts, amounts)
def test_cpu_and_mem_are_never_below_what_the_image_asks_for(before, minimum, own):
    merged = merge_minimum(before, minimum, own)
    for slot in ("cpu", "mem"):
        assert merged.get(slot, 0) >= own.get(slot, 0)


@given(amounts, amounts)
def test_what_nobody_has_changed_follows_the_image(before, own):
    assert merge_minimum(before, before, own) == own


@given(amounts, amounts, amounts)
def test_what_an_administrator_has_changed_stays(before, minimum, own):
    merged = merge_minimum(before, minimum, own)
    if minimum.get("gpu") != before.get("gpu"):
        assert merged.get("gpu") == minimum.get("gpu")
    else:
        assert merged.get("gpu") == own.get("gpu")


def test_a_node_holds_what_its_engine_calls_by_another_name():
    references = {"docker": "docker.io/library/python:3", "process": "python"}
    assert is_held("docker", {"python:3"}, references, ())
    assert is_held("docker", {DIGEST}, references, ("", DIGEST))
    assert not is_held("docker", {"python:4", ""}, references, ("",))
    assert not is_held("fake", {"python"}, references, ())


@given(st.text(string.printable, max_size=30))
def test_no_text_is_an_address_that_breaks_us(text):
    host = host_of(text)
    assert isinstance(host, str)
