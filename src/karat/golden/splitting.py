"""The development and held-out parts of a golden set.

Systems are tuned on one and measured on the other. Each query has a permanent random number, a hash
of a salt and its id: queries added later do not change the part of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from karat.errors import InputError, UsageError
from karat.golden.query import GoldenQuery
from karat.golden.sampling import permanent_numbers

PART = "part"  # the attribute of queries that names their part
DEV, HELD_OUT = "dev", "held_out"
PARTS = (DEV, HELD_OUT)
SHARE = 0.5  # default share of the queries for development
SALT = "karat"  # the salt where there is no workspace with its own


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a golden set."""

    parts: dict[str, str]  # the part of each query
    new: list[str]  # queries that had no part before
    dev: int  # number of queries for development
    held_out: int  # number of queries held out


def parts(query_ids: Iterable[str], share: float = SHARE, salt: str = SALT) -> dict[str, str]:
    """The part of each query: ``dev`` if its number is below the share, else ``held_out``.

    Args:
        query_ids: Any queries; the part of one does not depend on the others.
        share: Expected share of ``dev``, above 0 and below 1; the actual share is random.
        salt: Salt of the numbers. The same salt gives the same parts.

    Raises:
        UsageError: the share is not between 0 and 1.

    Source: permanent random numbers, as in ``karat.golden.sampling``.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise UsageError(f"a share of {share!r} leaves a part empty", fix="0.5, or 1/2")
    ids = list(query_ids)
    # Another salt than that of the draw from a log, which uses the salt itself.
    numbers = permanent_numbers(ids, f"{salt} {PART}")
    return {
        query_id: DEV if number < share else HELD_OUT
        for query_id, number in zip(ids, numbers.tolist(), strict=True)
    }


def split(
    before: Mapping[str, object], share: float = SHARE, salt: str = SALT, *, source: str
) -> Split:
    """The parts of all queries; those that have a part keep it.

    Args:
        before: The attribute ``part`` of each query; None for a query without it.
        share: As in ``parts``, for queries without a part.
        salt: As in ``parts``.
        source: Name of the golden set in messages.

    Raises:
        UsageError: the share is not between 0 and 1.
        InputError: an unknown ``part``, or no queries.
    """
    drawn = parts(before, share, salt)
    if not before:
        raise InputError("the golden set has no queries", file=source)
    for query_id, part in before.items():
        if part is not None and part not in PARTS:
            raise InputError(
                f"its attribute {PART!r} is {part!r}, neither {DEV} nor {HELD_OUT}",
                file=source,
                query=query_id,
                fix=f"rename that attribute: {PART!r} is for the parts of a split",
            )
    assigned = {query_id: str(part or drawn[query_id]) for query_id, part in before.items()}
    counts = Counter(assigned.values())
    new = [query_id for query_id, part in before.items() if part is None]
    return Split(assigned, new, counts[DEV], counts[HELD_OUT])


def read_share(text: str) -> float:
    """A share from ``0.5`` or ``1/2``.

    Raises:
        UsageError: it is neither.
    """
    over, slash, under = text.partition("/")
    try:
        return float(over) / float(under) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{text!r} is not a share", fix="--share 0.5, or --share 2/3") from None


def in_part(query: GoldenQuery, division: Split) -> GoldenQuery:
    """A query with its part as an attribute."""
    return replace(query, attributes={**query.attributes, PART: division.parts[query.query_id]})
