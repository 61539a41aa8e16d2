"""The scale of grades that a user declares: ``0-3``."""

from __future__ import annotations

import re

from karat.errors import UsageError
from karat.tables import Qrels

_RANGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:-|–|:|\.\.)\s*(\d+(?:\.\d+)?)\s*")


def on_scale(qrels: Qrels, scale: str | tuple[float, float] | None) -> Qrels:
    """The judgments on the scale declared; as they are if it is None.

    Args:
        qrels: The judgments.
        scale: ``"0-3"``, or lowest and highest grade.

    Raises:
        UsageError: the text is not a range, or the range holds no grades.
        InputError: a grade lies outside it.
    """
    if scale is None:
        return qrels
    if isinstance(scale, str):
        found = _RANGE.fullmatch(scale)
        if found is None:
            raise UsageError(
                f"{scale!r} is not a scale: the lowest and the highest grade",
                fix="--scale 0-3, for example",
            )
        low, high = found.groups()
    else:
        try:
            low, high = scale
        except (TypeError, ValueError):
            raise UsageError(
                f"{scale!r} is not a scale: the lowest and the highest grade",
                fix='scale=(0, 3), or scale="0-3"',
            ) from None
    try:
        return qrels.on_scale(float(low), float(high))
    except (TypeError, ValueError):
        raise UsageError(
            f"{scale!r} is not a scale: grades are numbers", fix='scale=(0, 3), or scale="0-3"'
        ) from None
