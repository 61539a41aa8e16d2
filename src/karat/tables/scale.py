"""The scale of grades that somebody declares: ``0-3``, or two numbers."""

from __future__ import annotations

import math
import re
from typing import Any

from karat.errors import UsageError

Scale = tuple[float, float]

_RANGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:-|–|:|\.\.)\s*(\d+(?:\.\d+)?)\s*")


def read_scale(value: Any) -> Scale:
    """Lowest and highest grade.

    Args:
        value: ``"0-3"``, or two numbers.

    Raises:
        UsageError: it is neither, or holds no grades.
    """
    fix = "the lowest and the highest grade, from 0 up: 0-3 on the command line, (0, 3) in Python"
    try:
        if isinstance(value, str):
            found = _RANGE.fullmatch(value)
            low, high = map(float, found.groups() if found else ())
        else:
            low, high = map(float, value)
    except (TypeError, ValueError):
        raise UsageError(f"{value!r} is not a scale", fix=fix) from None
    if not 0 <= low < high < math.inf:
        raise UsageError(f"a scale from {low:g} to {high:g} holds no grades", fix=fix)
    return low, high
