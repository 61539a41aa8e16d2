"""The development part of a golden set and the part that is held out.

What is tuned on some queries is measured on others. Each query has a permanent random number, made
of a salt and its id: queries that are added later change the part of no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from karat.errors import InputError, UsageError
from karat.golden.query import GoldenQuery
from karat.golden.sampling import permanent_numbers

PART = "part"
"""The attribute of queries that names their part."""
DEV, HELD_OUT = "dev", "held_out"
PARTS = (DEV, HELD_OUT)
SHARE = 0.5
"""Share of the queries that are for development, unless something else is asked for."""
SALT = "karat"
"""What the numbers are made of where no workspace has a salt of its own."""


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a golden set.

    Attributes:
        parts: The part of each query.
        new: Queries that had none before.
        dev: How many queries are for development.
        held_out: How many are held out.
    """

    parts: dict[str, str]
    new: list[str]
    dev: int
    held_out: int


def parts(query_ids: Iterable[str], share: float = SHARE, salt: str = SALT) -> dict[str, str]:
    """The part of each query: ``dev`` if its number is below the share, else ``held_out``.

    Args:
        query_ids: Any queries; the part of one does not depend on the others.
        share: Of the queries that are to be ``dev``, above 0 and below 1; how many come out varies
            by chance.
        salt: What the numbers are made of. The same salt gives the same parts.

    Raises:
        UsageError: the share is not between 0 and 1.

    Source: permanent random numbers, as in ``karat.golden.sampling``.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise UsageError(f"a share of {share!r} leaves a part empty", fix="0.5, or 1/2")
    ids = list(query_ids)
    # A salt of its own: the draw from a log uses the numbers of the salt itself.
    numbers = permanent_numbers(ids, f"{salt} {PART}")
    return {
        query_id: DEV if number < share else HELD_OUT
        for query_id, number in zip(ids, numbers.tolist(), strict=True)
    }


def split(
    before: Mapping[str, object], share: float = SHARE, salt: str = SALT, *, source: str
) -> Split:
    """The parts of all queries: those that have one keep it, whatever the share is now.

    Args:
        before: What the attribute ``part`` of each query is; None for a query without it.
        share: As in ``parts``, for queries without a part.
        salt: As in ``parts``.
        source: What messages call the golden set.

    Raises:
        UsageError: the share is not between 0 and 1.
        InputError: ``part`` is something else for some query, or there are no queries.
    """
    made = parts(before, share, salt)
    if not before:
        raise InputError("the golden set has no queries", file=source)
    for query_id, part in before.items():
        if part is not None and part not in PARTS:
            raise InputError(
                f"its attribute {PART!r} is {part!r}, neither {DEV} nor {HELD_OUT}",
                file=source,
                query=query_id,
                fix=f"call that attribute something else: {PART!r} is for the parts of a split",
            )
    found = {query_id: str(part or made[query_id]) for query_id, part in before.items()}
    counts = Counter(found.values())
    new = [query_id for query_id, part in before.items() if part is None]
    return Split(found, new, counts[DEV], counts[HELD_OUT])


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


def in_part(query: GoldenQuery, made: Split) -> GoldenQuery:
    """A query with its part as an attribute."""
    return replace(query, attributes={**query.attributes, PART: made.parts[query.query_id]})
