"""Courses over time: as an SVG file, and as a line of blocks for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from backendai_hub.core.simulation import Figures, Point

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _LEFT, _GAP = 640, 160, 56, 48
_COLORS: Final = ("#5b6770", "#d9480f")


def draw_spark(values: Sequence[float], *, width: int = 60) -> str:
    """Draw values as blocks, each the highest of its part; the top is the maximum."""
    if not values:
        return ""
    parts = min(width, len(values))
    tops = [
        max(values[i * len(values) // parts : (i + 1) * len(values) // parts])
        for i in range(parts)
    ]
    most = max(tops) or 1
    last = len(_BLOCKS) - 1
    return "".join(_BLOCKS[min(last, int(top * last / most + 0.5))] for top in tops)


def spread(points: Sequence[Point], seconds: int, name: str) -> list[float]:
    """Return a course's values at even distances, as blocks need them."""
    count = 60
    values, index = [], 0
    for i in range(count if points else 0):
        at = seconds * i / count
        while index + 1 < len(points) and points[index + 1].at <= at:
            index += 1
        values.append(float(getattr(points[index], name)))
    return values


def draw_svg(courses: Sequence[tuple[str, Figures]]) -> str:
    """Draw who waits and what is in use, one line for each outcome."""
    height = 2 * (_HEIGHT + _GAP) + 24
    seconds = max([1, *(f.seconds for _, f in courses)])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0'
        f' {_LEFT + _WIDTH + 16} {height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for row, (name, title) in enumerate(
        (("waiting", "sessions that wait"), ("used", "in use of the scarcest slot"))
    ):
        top = 24 + row * (_HEIGHT + _GAP)
        parts += _panel(courses, name, title, top=top, seconds=seconds)
    for i, (label, _) in enumerate(courses):
        x, y = _LEFT + i * 120, height - 8
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10"')
        parts.append(f' fill="{_COLORS[i % 2]}"/>')
        parts.append(f'<text x="{x + 16}" y="{y}">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    courses: Sequence[tuple[str, Figures]],
    name: str,
    title: str,
    *,
    top: int,
    seconds: int,
) -> Iterator[str]:
    values = [float(getattr(p, name)) for _, f in courses for p in f.points]
    most = max([1.0, *values]) if name == "waiting" else 1.0
    bottom = top + _HEIGHT
    most_told = f"{most:g}" if name == "waiting" else "100 %"
    yield f'<text x="{_LEFT}" y="{top - 8}">{escape(title)}</text>'
    yield f'<text x="{_LEFT - 6}" y="{top + 10}" text-anchor="end">{most_told}</text>'
    yield f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end">0</text>'
    yield (
        f'<path d="M{_LEFT} {top}V{bottom}H{_LEFT + _WIDTH}" fill="none"'
        ' stroke="#adb5bd"/>'
    )
    yield (
        f'<text x="{_LEFT + _WIDTH}" y="{bottom + 16}" text-anchor="end">'
        f"{tell_seconds(seconds)}</text>"
    )
    for i, (_, figures) in enumerate(courses):
        path = _path(figures, name, most=most, bottom=bottom, seconds=seconds)
        if path:
            yield (
                f'<path d="{path}" fill="none" stroke="{_COLORS[i % 2]}"'
                ' stroke-width="1.5"/>'
            )


def _path(
    figures: Figures, name: str, *, most: float, bottom: int, seconds: int
) -> str:
    steps: list[str] = []
    for point in figures.points:
        x = _LEFT + _WIDTH * point.at / seconds
        y = bottom - _HEIGHT * min(1.0, float(getattr(point, name)) / most)
        steps.append(f"H{x:.1f}V{y:.1f}" if steps else f"M{x:.1f} {y:.1f}")
    return "".join(steps)


def tell_seconds(seconds: float | None) -> str:
    """Write a time as people say it: ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds is None:
        return "never"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
