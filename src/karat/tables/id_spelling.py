"""Ids that would be the same but for how they are written: case, prefix, zeros, encoding."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

SHARE = 0.1
"""Share of ids that a spelling must match to be a likely cause."""
DISTINCT = 0.9
"""Share of ids that must stay distinct when a difference is undone."""
_LOOKED_AT = 20_000  # ids whose beginnings and ends are tried
_LONGEST = 200  # characters of an id that are tried

Ids = Mapping[str, Collection[str]]
Fold = Callable[[str], str]
Cut = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Spelling:
    """Why ids of one side are not found on the other, most likely.

    Attributes:
        cause: What they differ by, as in ``upper and lower case``.
        here: An id of the one side.
        there: What it is most likely called on the other.
        matched: Ids of the one side that are found on the other, once the difference is undone.
    """

    cause: str
    here: str
    there: str
    matched: int


def likely_cause(here: Ids, there: Ids) -> Spelling | None:
    """How the ids of a run differ from those of its judgments, if that explains many of them.

    Args:
        here: Ids of the run that are not found in the judgments, in groups (documents by query).
        there: Ids of the judgments, in the same groups.

    Returns:
        The first difference that explains a tenth of the ids or more; None if none does.
    """
    total = sum(map(len, here.values()))
    for difference in _differences(here, there):
        found = list(_matched(here, there, difference))
        if found and len(found) >= SHARE * total:
            return Spelling(difference.cause, *found[0], len(found))
    return None


class _Difference(NamedTuple):
    """What is undone in the ids of the run, and in those of the judgments.

    Attributes:
        cause: What it is called.
        here: Undoes it in an id of the run.
        there: In one of the judgments.
        merges: Whether several ids of the run may become one.
    """

    cause: str
    here: Fold
    there: Fold
    merges: bool = False


def _differences(here: Ids, there: Ids) -> Iterator[_Difference]:
    """Differences to undo, the simplest first."""
    for cause, fold in _FOLDS.items():
        yield _Difference(cause, fold, fold)
    several = "several of case, blanks, zeros, quotes and encoding"
    yield _Difference(several, _all_folds, _all_folds)
    yield from _affixes(here, there)
    one, other = (
        {group: {_all_folds(each) for each in ids} for group, ids in side.items()}
        for side in (here, there)
    )
    for cause, cut, cut_there, _ in _affixes(one, other):
        yield _Difference(
            f"{cause}, and by case, blanks, zeros, quotes or encoding",
            lambda each, cut=cut: cut(_all_folds(each)),  # type: ignore[misc]
            lambda each, cut=cut_there: cut(_all_folds(each)),  # type: ignore[misc]
        )
    chunk = "a number of a chunk at the end (collapse folds chunks into documents)"
    yield _Difference(chunk, _without_chunk, str, merges=True)
    yield _Difference("what is written around a number", _number, _number)


def _matched(here: Ids, there: Ids, difference: _Difference) -> Iterator[tuple[str, str]]:
    """Ids that are found once the difference is undone, with what they are called there."""
    sides = ((there, difference.there), *(() if difference.merges else ((here, difference.here),)))
    for side, fold in sides:
        every = {each for ids in side.values() for each in ids}
        if len({fold(each) for each in every}) < DISTINCT * len(every):
            return  # what makes one of many would find anything
    for group, ids in here.items():
        known = {difference.there(each): each for each in there.get(group, ())}
        known.pop("", None)
        for each in ids:
            if (called := known.get(difference.here(each))) is not None:
                yield each, called


def _affixes(here: Ids, there: Ids) -> Iterator[_Difference]:
    """The beginning, or the end, that the ids of one side have and those of the other lack."""
    for longer, shorter, where in ((here, there, "run"), (there, here, "judgments")):
        ids = [each for group in longer.values() for each in group]
        for what, cuts, has, cut in (
            ("prefix", _prefixes, str.startswith, str.removeprefix),
            ("suffix", _suffixes, str.endswith, str.removesuffix),
        ):
            counts = Counter(
                affix
                for group, each in _few(longer)
                for affix, rest in cuts(each)
                if rest in shorter.get(group, ())
            )
            for affix, count in counts.most_common(1):
                if count > 1 and 2 * sum(has(each, affix) for each in ids) >= len(ids):

                    def undone(each: str, cut: Cut = cut, affix: str = affix) -> str:
                        return cut(each, affix)

                    folds = (undone, str) if longer is here else (str, undone)
                    yield _Difference(f"the {what} {affix!r} of those in the {where}", *folds)


def _few(side: Ids) -> Iterator[tuple[str, str]]:
    pairs = ((group, each) for group, ids in side.items() for each in ids)
    for place, pair in enumerate(pairs):
        if place == _LOOKED_AT:
            return
        yield pair


def _prefixes(each: str) -> Iterable[tuple[str, str]]:
    return ((each[:at], each[at:]) for at in range(1, min(len(each), _LONGEST)))


def _suffixes(each: str) -> Iterable[tuple[str, str]]:
    return ((each[-at:], each[:-at]) for at in range(1, min(len(each), _LONGEST)))


def _without_chunk(each: str) -> str:
    return re.sub(r"(?i)[#:_/.-]+(chunk|part|passage|p|c)?[#:_/.-]*[0-9]+$", "", each)


def _number(each: str) -> str:
    """The one number in an id; empty if there are none or several."""
    found = re.findall(r"[0-9]+", each)
    return (found[0].lstrip("0") or "0") if len(found) == 1 else ""


def _unquoted(each: str) -> str:
    """Without quotes or brackets around it, and without the b of Python's bytes."""
    return re.sub(r"^b(?=['\"])", "", each.strip()).strip("\"'`[](){}<> ")


def _all_folds(each: str) -> str:
    for fold in _FOLDS.values():
        each = fold(each)
    return each


_FOLDS: dict[str, Fold] = {
    "upper and lower case": str.casefold,
    "blanks around them": str.strip,
    "URL encoding": unquote,
    "a decimal point, as of numbers (7.0 for 7)": lambda each: re.sub(r"\.0+$", "", each),
    "leading zeros": lambda each: re.sub(r"(?<![0-9.])0+(?=[0-9])", "", each),
    "the Unicode form of letters": lambda each: unicodedata.normalize("NFKC", each),
    "quotes or brackets around them": _unquoted,
}
