"""What images say of themselves in labels."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.slots import parse_amount, parse_slots
from backendai_hub.registries.labels import BadLabels, ImageTraits, Role, read_labels

P = "ai.backend."


def test_an_image_that_says_nothing_is_offered_with_the_usual_amounts():
    assert read_labels({"maintainer": "x"}) == ImageTraits(
        minimum={"cpu": "1", "mem": "1g"}, shmem="64m", role=Role.COMPUTE
    )


def test_everything_an_image_can_say_is_read():
    read = read_labels(
        {
            f"{P}kernelspec": "1",
            f"{P}resource.min.cpu": "2",
            f"{P}resource.min.mem": "512m",
            f"{P}resource.min.cuda.device": "0",
            f"{P}resource.min.cuda.shares": "0.1",
            f"{P}resource.preferred.shmem": "1g",
            f"{P}resource.preferred.mem": "4g",
            f"{P}resource.preferred.cpu": "1",
            f"{P}accelerators": "cuda, rocm,cuda",
            f"{P}role": "inference",
            f"{P}features": "uid-match batch  query batch",
            f"{P}base-distro": "ubuntu22.04",
            f"{P}runtime-type": "python",
            f"{P}runtime-path": "/usr/bin/python3",
            f"{P}service-ports": "jupyter:http:8091,tb:http:[6006,6007]",
        }
    )

    assert read == ImageTraits(
        minimum={"cpu": "2", "mem": "512m", "cuda.shares": "0.1"},
        preferred={"cpu": "2", "mem": "4g"},
        shmem="1g",
        accelerators=("cuda", "rocm"),
        role=Role.INFERENCE,
        features=("uid-match", "batch", "query"),
        base_distro="ubuntu22.04",
        runtime_type="python",
        runtime_path="/usr/bin/python3",
        service_ports="jupyter:http:8091,tb:http:[6006,6007]",
        is_labelled=True,
    )


@pytest.mark.parametrize("slot", ["cpu", "mem"])
def test_no_image_runs_without_a_cpu_and_memory(slot):
    read = read_labels({f"{P}resource.min.{slot}": "0"})

    assert isinstance(read, ImageTraits)
    assert read.minimum == {"cpu": "1", "mem": "1g"}


@pytest.mark.parametrize("told", ["", "none", " , "])
def test_an_image_may_name_no_accelerator(told):
    read = read_labels({f"{P}accelerators": told})
    assert isinstance(read, ImageTraits)
    assert read.accelerators == ()


@pytest.mark.parametrize("amount", ["", "much", "-1", "1e9999", "NaN", "inf", "9" * 99])
@pytest.mark.parametrize("label", ["min.cpu", "min.mem", "preferred.shmem"])
def test_an_amount_that_is_none_is_the_reason_to_leave_the_image_out(label, amount):
    read = read_labels({f"{P}resource.{label}": amount})

    assert isinstance(read, BadLabels)
    [reason] = read.reasons
    assert reason.startswith(f"label {P}resource.{label}: ")


def test_every_wrong_label_is_told_at_once():
    read = read_labels(
        {
            f"{P}kernelspec": "9",
            f"{P}resource.min.cpu": "x",
            f"{P}resource.min.shmem": "1g",
            f"{P}resource.min.no slot": "1",
            f"{P}accelerators": "cuda,--privileged",
            f"{P}role": "BOSS",
            f"{P}base-distro": "a\x1b[31m",
            f"{P}runtime-path": "/" * 513,
            f"{P}features": " ".join(f"f{n}" for n in range(65)),
            "other": "\0",
        }
    )

    assert isinstance(read, BadLabels)
    assert len(read.reasons) == 10


AMOUNTS = st.sampled_from(["0", "1", "0.5", "64m", "1g", "x", "-1", "", "1.0001", "k"])
NAMES = st.sampled_from(
    [
        "resource.min.cpu",
        "resource.min.mem",
        "resource.min.cuda.shares",
        "resource.preferred.cpu",
        "resource.preferred.mem",
        "resource.preferred.shmem",
        "accelerators",
        "role",
        "kernelspec",
        "features",
    ]
)


@given(
    st.dictionaries(
        st.one_of(NAMES, st.text(max_size=8)).map(lambda name: P + name),
        st.one_of(AMOUNTS, st.text(string.printable + "\0é", max_size=12)),
        max_size=8,
    )
)
def test_whatever_labels_say_is_a_usable_image_or_has_reasons(labels):
    read = read_labels(labels)

    if isinstance(read, BadLabels):
        assert read.reasons
        return
    minimum, preferred = parse_slots(read.minimum), parse_slots(read.preferred)
    assert minimum["cpu"] > 0
    assert minimum["mem"] > 0
    assert parse_amount("shmem", read.shmem) >= 0
    assert all(amount >= minimum[slot] for slot, amount in preferred.items())
