"""Why a session waits, in lines that a person reads."""

from __future__ import annotations

from collections.abc import Iterator

from backendai_hub.api.explanations import Why


def describe_why(name: str, why: Why) -> Iterator[str]:
    """Yield the lines that a person reads."""
    if why.position is None:
        yield f"{name} is {why.status}: {'; '.join(why.reasons)}"
        if why.hangs_on:
            yield f"  {why.hangs_on}"
        return
    yield f"{name} waits, number {why.position} of {why.waiting}"
    for reason in why.reasons:
        yield f"  because  {reason}"
    for change in why.changes:
        yield f"  would start now  {change.text}"
    if why.starts_at is None:
        yield f"  starts  nobody knows when: {why.hangs_on}"
    else:
        word = "not before" if why.at_the_earliest else "at the latest"
        yield f"  starts  {word} {why.starts_at}, {why.hangs_on}"
