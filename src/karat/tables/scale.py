"""Scales of grades: ``0-3``, or two numbers."""

from __future__ import annotations

import math
import re
from typing import Any

from karat.errors import UsageError

Scale = tuple[float, float]

_RANGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:-|–|:|\.\.)\s*(\d+(?:\.\d+)?)\s*")


def read_scale(value: Any) -> Scale:
    """Lowest and highest grade of a scale.

    Args:
        value: ``"0-3"``, or two numbers; 0 or more, in ascending order.

    Raises:
        UsageError: the value is neither, or the scale is empty.
    """
    fix = "the lowest and the highest grade, from 0 up: 0-3 on the command line, (0, 3) in Python"
    try:
        if isinstance(value, str):
            match = _RANGE.fullmatch(value)
            low, high = map(float, match.groups() if match else ())
        else:
            low, high = map(float, value)
    except (TypeError, ValueError):
        raise UsageError(f"{value!r} is not a scale", fix=fix) from None
    if not 0 <= low < high < math.inf:
        raise UsageError(f"the scale from {low:g} to {high:g} is empty", fix=fix)
    return low, high
