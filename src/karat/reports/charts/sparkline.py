"""A course as a line without axes, beside its newest value."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT = 120, 28
_INSIDE = 2  # pixels between the line and the border


def sparkline(values: Sequence[float | None]) -> str:
    """The points of an SVG polyline of ``WIDTH`` × ``HEIGHT``; empty with fewer than two values.

    The line spans from the lowest to the highest value; gaps are bridged.
    """
    known = [(at, value) for at, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return ""
    low, high = (end(value for _, value in known) for end in (min, max))
    first, last = known[0][0], known[-1][0]
    wide, tall = WIDTH - 2 * _INSIDE, HEIGHT - 2 * _INSIDE
    points = []
    for at, value in known:
        share = 0.5 if high == low else (value - low) / (high - low)
        x = _INSIDE + wide * (at - first) / (last - first)
        points.append(f"{x:.1f},{_INSIDE + tall * (1 - share):.1f}")
    return " ".join(points)
