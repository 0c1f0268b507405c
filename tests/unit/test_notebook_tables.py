"""What a notebook shows where there are no widgets."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest

import backendai_lab.notebook as package
from backendai_hub.api.explanations import Why
from backendai_hub.core.live_usage import LiveSession
from backendai_hub.core.sessions import (
    Session,
    SessionResult,
    SessionStatus,
    SessionType,
)
from backendai_hub.core.vfolders import Folder
from backendai_lab.notebook.folders import Folders
from backendai_lab.notebook.plain import (
    show_bytes,
    show_slots,
    tabulate_sessions,
    tell_status,
    tell_use,
    write_html,
    write_text,
)
from backendai_lab.notebook.rows import SessionRow, is_web
from backendai_lab.notebook.shown import has_front_end
from backendai_lab.notebook.texts import LANGUAGES, Words, choose_language, load_texts

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J"


def make_session(**changes):
    fields = {
        "id": "a",
        "name": "train",
        "type": SessionType.BATCH,
        "owner": "mina",
        "domain": "default",
        "project": "vision",
        "image": "python",
        "slots": {"mem": "4g", "cuda.shares": "0.5", "cpu": "2"},
        "shmem": "64m",
        "status": SessionStatus.RUNNING,
        "reason": "",
        "created_at": "2026-01-02T03:00:00Z",
    }
    return Session(**{**fields, **changes})


def fields_of(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (SessionResult.SUCCESS, "Succeeded · what was said"),
        (SessionResult.FAILURE, "Failed · what was said"),
        (SessionResult.UNDEFINED, "Stopped · what was said"),
    ],
)
def test_a_batch_job_that_somebody_stopped_does_not_read_as_a_failure(result, told):
    job = make_session(
        status=SessionStatus.TERMINATED, result=result, reason="what was said"
    )
    assert tell_status(job, None, Words("en")) == told


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_the_same(language):
    english, texts = load_texts("en"), load_texts(language)

    assert list(texts) == list(english)
    assert all(texts.values())
    for key, text in english.items():
        assert fields_of(texts[key]) == fields_of(text), key


def test_every_status_has_a_word_and_nothing_is_said_that_no_catalogue_has():
    assert {str(status) for status in SessionStatus} <= set(load_texts("en"))
    for file in Path(package.__file__).parent.glob("texts/*.json"):
        assert json.loads(file.read_text("utf-8"))


def test_the_language_is_the_one_asked_for_and_english_where_we_do_not_speak_it():
    assert choose_language({"LANG": "ko_KR.UTF-8"}) == "ko"
    assert choose_language({"LANG": "C.UTF-8"}) == "en"
    assert choose_language({"BACKENDAI_LANGUAGE": "th", "LANG": "ja_JP"}) == "th"
    with pytest.raises(LookupError, match="'fr' is none of en, ko, ja, th"):
        load_texts("fr")


def test_widgets_are_for_those_who_look_through_a_page():
    assert has_front_end({"JPY_SESSION_NAME": "/home/work/a.ipynb"})
    assert not has_front_end({})
    assert not has_front_end({"JPY_SESSION_NAME": "a", "BACKENDAI_WIDGETS": "0"})
    assert has_front_end({"BACKENDAI_WIDGETS": "1"})


def test_amounts_are_written_as_people_read_them():
    slots = {"mem": "4g", "cuda.shares": "0.5", "cpu": "2"}
    assert show_slots(slots, Words("en")) == ("2 CPU, 4 GiB, 0.5 NVIDIA GPU share")
    assert [show_bytes(n) for n in (0, 1023, 1536, 5 << 30, 250 << 20)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5 GiB",
        "250 MiB",
    ]


def test_what_nobody_measured_is_not_told_as_nothing():
    say = Words("en")
    assert tell_use(None, say) == ""
    use = LiveSession(session_id="a", at=1.0, cpu=1.25, memory=1 << 30)
    assert tell_use(use, say) == "1.2 cores · 1 GiB"
    use = LiveSession(session_id="a", at=1.0, cpu=0.0, cpu_limit=2.0, utilization=0.5)
    assert tell_use(use, say) == "0.0 of 2 cores · accelerator 50 %"


def test_a_row_shows_all_that_is_measured_and_nothing_of_what_has_ended():
    row = SessionRow(Words("en"), lambda _id: None)
    meters = (row._cpu, row._memory, row._accelerator)
    row.show(make_session(), None, LiveSession(session_id="a", at=1.0, cpu=1.0))
    assert [bool(meter.value) for meter in meters] == [True, False, False]
    use = LiveSession(session_id="a", at=1.0, cpu=1.0, memory=1 << 30, utilization=0.62)
    row.show(make_session(), None, use)
    assert all(meter.value for meter in meters)
    assert 'aria-valuetext="accelerator 62 %"' in row._accelerator.value
    row.show(make_session(status=SessionStatus.TERMINATED), None, use)
    assert not any(meter.value for meter in meters)


def test_a_waiting_session_is_shown_with_its_place_and_why():
    waits = make_session(status=SessionStatus.PENDING)
    why = Why(
        session="a",
        status=SessionStatus.PENDING,
        reasons=["no node has 2 free GPUs"],
        position=3,
        waiting=9,
    )
    table = tabulate_sessions([waits], {"a": why}, {}, Words("en"))
    assert "Waiting · 3 of 9 in the queue · no node has 2 free GPUs" in table[1][0][1]


def test_names_cannot_become_markup_nor_move_the_cursor():
    hostile = make_session(name=HOSTILE, image=HOSTILE, reason=HOSTILE)
    table = tabulate_sessions([hostile], {}, {}, Words("en"))

    page = write_html(table, "")
    assert "<img" not in page
    assert "&lt;img src=x" in page
    assert "\x1b" not in write_text(table, "")
    assert not is_web("javascript:alert(1)")
    assert is_web("/user/mina/train/")


def test_columns_line_up_whatever_the_script():
    rows = [["학습", "ok"], ["train", "ok"], ["กำลัง", "ok"]]
    lines = write_text((["n", "s"], rows), "").split("\n")

    assert lines[1] == "학습   ok"
    assert lines[2] == "train  ok"
    assert lines[3] == "กำลัง   ok"  # two of its five marks take no column
    assert write_text((["n"], []), "nothing") == "nothing"


@pytest.mark.parametrize(
    ("language", "told"),
    [
        (
            "en",
            ["Read only", "Read and write", "Read, write and delete", "Managed only"],
        ),
        ("ko", ["읽기 전용", "읽기와 쓰기", "읽기, 쓰기, 삭제", "관리만 가능"]),
    ],
)
def test_what_one_may_do_in_a_folder_is_said_in_words(language, told):
    folders = [
        Folder(id=str(access), name="data", access=access)
        for access in ("ro", "rw", "wd", None)
    ]

    (_, rows), _ = Folders(language=language).tabulate_these(folders)

    assert [row[3] for row in rows] == told
