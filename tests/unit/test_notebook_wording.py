"""What widgets and tables of notebooks quote of the service, in each language."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from backendai_agent.environments import copy_site
from backendai_hub.api.explanations import PossibleChange, Why
from backendai_hub.core.sessions import Session, SessionStatus, SessionType
from backendai_lab.notebook.plain import tabulate_sessions, write_html, write_text
from backendai_lab.notebook.rows import SessionRow
from backendai_lab.notebook.texts import LANGUAGES, Words, load_texts
from backendai_lab.notebook.wording import quote, title_slot

PAGES = Path(__file__).resolve().parents[2] / "labextension/packages/ui/src"
EXAMPLES = json.loads((PAGES / "phrases/examples.json").read_text("utf-8"))
REASON = "cpu: asks 4, 2 free on gpu-01"
REASON_KO = "CPU: 4 요청, gpu-01에 2 비어 있음"


def read_page_texts(language):
    return json.loads((PAGES / f"i18n/{language}/base.json").read_text("utf-8"))


def make_waiting():
    session = Session(
        id="a",
        name="train",
        type=SessionType.BATCH,
        owner="mina",
        domain="default",
        project="vision",
        image="python",
        slots={"cpu": "4", "cuda.device": "1"},
        shmem="64m",
        status=SessionStatus.PENDING,
        reason="",
        created_at="2026-01-02T03:00:00Z",
    )
    why = Why(
        session="a",
        status=SessionStatus.PENDING,
        reasons=[REASON],
        changes=[PossibleChange(text="with 2 cpu instead of 4", yours=True)],
    )
    return session, why


@pytest.mark.parametrize("language", ["ko", "ja", "th"])
def test_the_service_is_quoted_as_on_the_pages(language):
    said = {text: quote(text, Words(language)) for text in EXAMPLES}
    assert said == {text: each[language] for text, each in EXAMPLES.items()}


def test_english_is_quoted_as_it_is_but_for_names_of_resources():
    say = Words("en")
    assert quote(REASON, say) == "CPU: asks 4, 2 free on gpu-01"
    assert quote("with 2 mem less", say) == "with 2 memory less"
    assert quote("node cpu-01 left", say) == "node cpu-01 left"


@pytest.mark.parametrize("language", LANGUAGES)
def test_resources_and_states_have_the_names_they_have_on_the_pages(language):
    pages, texts = read_page_texts(language), load_texts(language)
    for kind in ("cpu", "mem", "device", "shares"):
        shown = pages["slot"][kind].replace("{{", "{").replace("}}", "}")
        assert texts[f"slot.{kind}"] == shown
    assert {s: texts[s] for s in SessionStatus.__members__} == pages["status"]


def test_an_accelerator_is_named_by_its_maker_and_its_profile():
    say = Words("en")
    assert title_slot("cuda.shares", say) == "NVIDIA GPU share"
    assert title_slot("rocm.device", say) == "AMD GPU"
    assert title_slot("cuda.device:1g.10gb-mig", say) == "NVIDIA 1g.10gb GPU"
    assert title_slot("tpu.device", say) == "tpu GPU"


def test_why_a_session_waits_is_told_in_the_language_of_the_notebook():
    session, why = make_waiting()
    table = tabulate_sessions([session], {"a": why}, {}, Words("ko"))
    for shown in (write_text(table, ""), write_html(table, "")):
        assert REASON_KO in shown
        assert "4 CPU, 1 NVIDIA GPU" in shown

    row = SessionRow(Words("ko"), lambda _id: None)
    row.show(session, why, None)
    assert REASON_KO in row._status.value
    assert "4 대신 2 CPU" in row._status.value


def test_moments_are_told_by_the_clock_here_and_a_day_that_is_none_is_left():
    say = Words("en")
    assert quote("starts at 2099-01-01 12:00 UTC", say) != (
        "starts at 2099-01-01 12:00 UTC"
    )
    told = "train-2026-13-45 10:00 UTC failed"
    assert quote(told, say) == told


@pytest.mark.parametrize(
    "text",
    [
        f"stopped by {'; ' * 900}",
        f"x {'(' * 900}{')' * 900}",
        ": " * 999,
        "stopped by a; " * 140,
        f"{'1' * 900} {'1 ' * 500}in all",
        "it ended; " * 100_000,
    ],
)
def test_hostile_texts_are_read_in_moments(text):
    begun = time.perf_counter()
    quote(text, Words("ko"))
    assert time.perf_counter() - begun < 2


def test_sessions_bring_the_books_of_the_pages(tmp_path):
    copy_site(tmp_path)
    for language in ("ko", "ja", "th"):
        brought = tmp_path / f"backendai_lab/notebook/phrases/{language}.json"
        book = PAGES / f"i18n/phrases/{language}.json"
        assert not brought.is_symlink()
        assert brought.read_bytes() == book.read_bytes()
