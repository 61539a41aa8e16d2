"""Parameters that measures share: relevance level, gain, discount."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from karat.errors import InputError
from karat.measures.entry import Parameter, show_number
from karat.measures.evidence import Floats, Ints

_HIGHEST_EXPONENT = 1000
_HIGHEST_GAIN = 1e300  # above it sums are infinite
_DEEPEST = 1 << 62

Gain = str | Mapping[float, float]


def read_number(text: str) -> float:
    """A finite number; raises ValueError."""
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError("a finite number")
    return value


def read_positive(text: str) -> float:
    """A finite number above 0; raises ValueError."""
    value = read_number(text)
    if value <= 0:
        raise ValueError("a number above 0")
    return value


def read_whole(text: str) -> int:
    """A whole number from 1; raises ValueError."""
    if not re.fullmatch(r"\s*\+?0*[1-9][0-9]*\s*", text):
        raise ValueError("a whole number from 1")
    return min(int(text), _DEEPEST)


def _read_base(text: str) -> float:
    value = read_number(text)
    if value <= 1:
        raise ValueError("a number above 1")
    return value


def _read_gain(text: str) -> Gain:
    plain = {"linear": "linear", "exp": "exp", "log2": "linear", "exp-log2": "exp"}
    if text.casefold() in plain:
        return plain[text.casefold()]
    pairs = [pair.split(":") for pair in text.strip("{}").replace("=", ":").split(",")]
    try:
        gains = {read_number(grade): read_number(value) for grade, value in pairs}
    except ValueError:
        raise ValueError("linear, exp, or a gain for each grade such as {1: 3, 2: 9}") from None
    if len(gains) < len(pairs):
        raise ValueError("one gain for each grade")
    if min(gains.values()) < 0:
        raise ValueError("gains of 0 or more")
    return dict(sorted(gains.items()))


def _show_gain(gain: Gain) -> str:
    if isinstance(gain, str):
        return gain
    return "{" + ", ".join(f"{show_number(g)}: {show_number(v)}" for g, v in gain.items()) + "}"


def _read_discount(text: str) -> str:
    if text.casefold() not in {"log2", "jk"}:
        raise ValueError("log2 or jk")
    return text.casefold()


REL = Parameter(
    "rel", "lowest grade that counts as relevant", read_positive, default=1.0, show=show_number
)
GAIN = Parameter(
    "gain",
    "linear (the grade), exp (2^grade - 1), or a gain for each grade, e.g. {1: 3, 2: 9} "
    "(grades not listed keep their grade)",
    _read_gain,
    default="linear",
    show=_show_gain,
)
DISCOUNT = Parameter(
    "discount",
    "log2: 1/log2(rank+1); jk: Järvelin and Kekäläinen's 1/log_base(rank), no discount before "
    "rank base",
    _read_discount,
    default="log2",
)
BASE = Parameter(
    "base",
    "base of the logarithm for discount=jk; models the user's patience",
    _read_base,
    default=None,
    show=show_number,
)


def gain_of(grade: Floats, gain: Gain) -> Floats:
    """The gain of each grade; a negative grade (pooled, not judged) gains nothing."""
    if gain == "linear":
        return _finite(np.maximum(grade, 0.0))
    if gain == "exp":
        if len(grade) and grade.max() > _HIGHEST_EXPONENT:
            raise InputError(
                f"grade {grade.max():g} is too high for gain=exp: 2^grade - 1 is infinite",
                fix="gain=linear, or grades on a scale such as 0 to 3",
            )
        return np.where(grade > 0, np.exp2(np.maximum(grade, 0.0)) - 1.0, 0.0)
    assert not isinstance(gain, str)
    gained = np.maximum(grade, 0.0)
    for level, value in gain.items():
        gained = np.where(grade == level, value, gained)
    return _finite(gained)


def _finite(gained: Floats) -> Floats:
    if len(gained) and gained.max() > _HIGHEST_GAIN:
        raise InputError(
            f"a gain of {gained.max():g} is too high: sums of it are infinite",
            fix="grades on a scale such as 0 to 3",
        )
    return gained


def divisor_of(rank: Ints, discount: str, base: float | None) -> Floats:
    """The divisor of the gain at each rank; shape as ``rank``.

    Uses math.log2, not NumPy's: its last bit is the C library's, and therefore trec_eval's.
    """
    places, back = np.unique(rank, return_inverse=True)
    if discount == "log2":
        table = [math.log2(place + 1) for place in places.tolist()]
    else:
        assert base is not None
        table = [max(1.0, math.log(p) / math.log(base)) for p in places.tolist()]
    return np.array(table, np.float64)[back]
