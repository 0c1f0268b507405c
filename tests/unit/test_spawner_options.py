"""What users choose, from the form and from the API, means the same."""

import json

import msgspec
import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.sessions import Session, SessionStatus, SessionType
from backendai_spawner.options import (
    SESSION_KEY,
    SpawnOptions,
    options_from_form,
    options_of,
    read_key,
    read_options,
    request_of,
    write_mount,
)

KEY = "0190a5b4-0000-7000-8000-000000000001"


def test_choosing_nothing_leaves_everything_to_the_service():
    assert read_options({}) == SpawnOptions()


def test_numbers_and_text_are_both_amounts():
    options = read_options({"image": "python", "slots": {"cpu": 2, "mem": "4g"}})

    assert options == SpawnOptions(image="python", slots={"cpu": "2", "mem": "4g"})


def test_cpu_and_mem_may_stand_alone():
    assert read_options({"cpu": 1, "mem": "1g"}).slots == {"cpu": "1", "mem": "1g"}


def test_what_is_asked_for_is_all_that_was_chosen():
    """Each option is one of the request, so that none is left out when it is sent."""
    chosen = {"image": "python", "name": "train-1", "project": "vision"}
    chosen |= {"resource_group": "gpus", "slots": {"cpu": "2"}, "shmem": "1g"}
    chosen |= {"cluster_size": 2, "cluster_mode": "multi-node"}
    chosen |= {"cluster_strategy": "spread"}
    mount = {"folder": "data", "subpath": "in", "target": "x", "permission": "ro"}
    chosen |= {"mounts": [mount], "automatic_mounts": False}
    options = read_options(chosen)
    assert msgspec.to_builtins(options) == chosen

    asked = msgspec.to_builtins(request_of(options, "python", argv=["--debug"]))
    assert chosen.items() <= asked.items()
    assert asked["argv"] == ["--debug"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"gpu": 1}, "gpu"),
        ({"image": ["a"]}, "image"),
        ({"image": "x" * 300}, "image"),
        ({"image": "a\nb"}, "image"),
        ({"name": "../etc"}, "name"),
        ({"project": 7}, "project"),
        ({"resource_group": ["gpus"]}, "resource_group"),
        ({"resource_group": "a\nb"}, "resource_group"),
        ({"slots": [1]}, "slots"),
        ({"slots": {"cpu": "-1"}}, "cpu"),
        ({"slots": {"cpu": [1]}}, "cpu"),
        ({"slots": {"cpu": True}}, "cpu"),
        ({"slots": {"mem": "lots"}}, "mem"),
        ({"cpu": {"a": 1}}, "cpu"),
        ({"shmem": "much"}, "shmem"),
        ({"spec": "{}"}, "spec"),
    ],
)
def test_the_refusal_begins_with_the_field(given, field):
    with pytest.raises(InvalidRequestError, match=f"^{field}"):
        read_options(given)


def test_the_launchers_json_wins_over_the_plain_fields():
    spec = {"image": "torch", "slots": {"cuda.device": "1"}, "name": None}

    chosen = options_from_form({"spec": [json.dumps(spec)], "image": ["python"]})

    assert chosen == {"image": "torch", "slots": {"cuda.device": "1"}}


def test_without_scripts_the_plain_fields_count():
    form = {
        "spec": [""],
        "_xsrf": ["token"],
        "image": ["python"],
        "name": [" train-1 "],
        "project": ["vision"],
        "resource_group": ["gpus"],
        "cpu": ["2"],
        "mem": [""],
        "slot:cuda.device": ["1"],
    }

    assert options_from_form(form) == {
        "image": "python",
        "name": "train-1",
        "project": "vision",
        "resource_group": "gpus",
        "slots": {"cpu": "2", "cuda.device": "1"},
    }


def test_a_session_says_what_would_ask_for_it_again():
    session = Session(
        id="a",
        name="train-1",
        type=SessionType.INTERACTIVE,
        owner="mina",
        domain="default",
        project="vision",
        resource_group="gpus",
        image="python",
        slots={"cpu": "2"},
        shmem="64m",
        status=SessionStatus.RUNNING,
        reason="",
        created_at="2026-01-02T03:00:00Z",
    )

    options = options_of(session)

    assert (options.project, options.resource_group) == ("vision", "gpus")
    assert read_options(msgspec.to_builtins(options)) == options


@pytest.mark.parametrize("spec", ["[1]", "{", '"x"', "{" + " " * 20_000 + "}"])
def test_a_broken_spec_is_refused(spec):
    with pytest.raises(InvalidRequestError, match=r"^spec"):
        options_from_form({"spec": [spec]})


def test_uploaded_files_are_refused():
    with pytest.raises(InvalidRequestError, match=r"^name"):
        options_from_form({"name": [{"body": b"x"}]})


@pytest.mark.parametrize("key", [None, "", "a b", "é", 7, "x" * 129])
def test_only_keys_the_service_takes_are_taken(key):
    assert read_key({SESSION_KEY: key}) is None


def test_our_own_key_is_no_unknown_option():
    given = {SESSION_KEY: KEY}

    assert read_options(given) == SpawnOptions()
    assert read_key(given) == KEY


@pytest.mark.parametrize("line", ["data", "data/a/b", "data:ro", "data/a:/x/y:wd"])
def test_a_folder_is_written_on_a_line_as_it_is_read(line):
    (mount,) = read_options({"mounts": [line]}).mounts
    assert write_mount(mount) == line


def test_folders_are_chosen_as_texts_or_as_objects():
    options = read_options({"mounts": ["data:ro", {"folder": "sets/2026"}, ""]})
    assert [(m.folder, m.permission) for m in options.mounts] == [
        ("data", "ro"),
        ("sets/2026", None),
    ]
    form = {"image": ["python"], "mounts": ["data:sets:ro", "more"]}
    chosen = options_from_form(form)
    assert chosen["mounts"] == ["data:sets:ro", "more"]
    lines = {"mounts": ["data:ro\r\n\r\n more ", "", "x:/y"]}
    assert options_from_form(lines) == {"mounts": ["data:ro", "more", "x:/y"]}
    assert options_from_form({"mounts": ["\n"], "image": [""]}) == {}
    for wrong in ("data", 7, [7], [{"folder": "x", "mode": "ro"}], [":ro"]):
        with pytest.raises(InvalidRequestError, match="mounts: "):
            read_options({"mounts": wrong})


def test_folders_come_by_themselves_unless_one_says_no():
    assert read_options({}).automatic_mounts
    assert read_options({"automatic_mounts": None}).automatic_mounts
    for no in (False, "false", "False"):
        options = read_options({"automatic_mounts": no})
        assert not options.automatic_mounts
        assert not request_of(options, "lab").automatic_mounts
    for neither in ("perhaps", 0, []):
        with pytest.raises(InvalidRequestError, match="automatic_mounts: must be"):
            read_options({"automatic_mounts": neither})
