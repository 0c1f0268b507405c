"""What the command line says of a session that waits."""

from __future__ import annotations

from typing import Any

from backendai_hub.api.explanations import PossibleChange, Why
from backendai_hub.commandline.why import describe_why
from backendai_hub.core.sessions import SessionStatus


def lines(**changes: Any) -> list[str]:
    why = Why(
        **{
            "session": "1",
            "status": SessionStatus.PENDING,
            "reasons": ["cpu: asks 2, 1 free on a"],
            "position": 2,
            "waiting": 3,
            "changes": [PossibleChange(text="with 1 cpu instead of 2", yours=True)],
            "starts_at": "2026-11-21T14:20:00Z",
            "hangs_on": "when a session on a ends",
            **changes,
        }
    )
    return list(describe_why("train", why))


def test_position_reasons_changes_and_the_start_stand_one_below_the_other():
    assert lines() == [
        "train waits, number 2 of 3",
        "  because  cpu: asks 2, 1 free on a",
        "  would start now  with 1 cpu instead of 2",
        "  starts  at the latest 2026-11-21 14:20 UTC, when a session on a ends",
    ]
    assert "not before" in lines(at_the_earliest=True)[-1]


def test_what_nobody_knows_is_said():
    unknown = lines(starts_at=None, hangs_on="it hangs on a limit")
    assert unknown[-1] == "  starts  nobody knows when: it hangs on a limit"


def test_a_session_that_does_not_wait_is_told_in_a_line_or_two():
    assert lines(
        position=None, status=SessionStatus.RUNNING, hangs_on="", reasons=["runs"]
    ) == ["train is RUNNING: runs"]
