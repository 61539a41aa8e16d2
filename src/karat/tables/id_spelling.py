"""Detects ids that differ only in spelling: case, prefix, leading zeros, encoding."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

SHARE = 0.1  # minimum share of ids that a difference must explain to be a likely cause
DISTINCT = 0.9  # minimum share of ids that must stay distinct when a difference is undone
_SAMPLE = 20_000  # ids whose prefixes and suffixes are tried
_LONGEST = 200  # characters of an id that are tried

Ids = Mapping[str, Collection[str]]
Fold = Callable[[str], str]
Cut = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Spelling:
    """The likely reason why ids of one side are not found on the other."""

    cause: str  # what they differ by, such as `upper and lower case`
    here: str  # an id of the one side
    there: str  # the id that it most likely corresponds to on the other side
    matched: int  # number of ids that match once the difference is undone


def likely_cause(here: Ids, there: Ids) -> Spelling | None:
    """The difference in spelling between the ids of a run and of its judgments, if there is one.

    Args:
        here: Ids of the run that are not in the judgments, in groups (documents by query).
        there: Ids of the judgments, in the same groups.

    Returns:
        The first difference that explains at least a tenth of the ids; None if none does.
    """
    total = sum(map(len, here.values()))
    for difference in _differences(here, there):
        matches = list(_matched(here, there, difference))
        if matches and len(matches) >= SHARE * total:
            return Spelling(difference.cause, *matches[0], len(matches))
    return None


class _Difference(NamedTuple):
    """A difference in spelling, and how to undo it."""

    cause: str
    here: Fold  # undoes it in an id of the run
    there: Fold  # undoes it in an id of the judgments
    merges: bool = False  # whether several ids of the run may become one


def _differences(here: Ids, there: Ids) -> Iterator[_Difference]:
    """Differences to undo, the simplest first."""
    for cause, fold in _FOLDS.items():
        yield _Difference(cause, fold, fold)
    several = "several of case, spaces, zeros, quotes and encoding"
    all_folds = cache(_all_folds)  # for these ids only
    yield _Difference(several, all_folds, all_folds)
    yield from _affixes(here, there)
    one, other = (
        {group: {all_folds(id_) for id_ in ids} for group, ids in side.items()}
        for side in (here, there)
    )
    for cause, cut, cut_there, _ in _affixes(one, other):
        yield _Difference(
            f"{cause}, and by case, spaces, zeros, quotes or encoding",
            lambda id_, cut=cut: cut(all_folds(id_)),  # type: ignore[misc]
            lambda id_, cut=cut_there: cut(all_folds(id_)),  # type: ignore[misc]
        )
    chunk = "a chunk number at the end (collapse folds chunks into documents)"
    yield _Difference(chunk, _without_chunk, str, merges=True)
    yield _Difference("the text around a number", _number, _number)


def _matched(here: Ids, there: Ids, difference: _Difference) -> Iterator[tuple[str, str]]:
    """Ids that match once the difference is undone, each with its match in the judgments."""
    known = _folded(there, difference.there)
    if len(set(known.values())) < DISTINCT * len(known):
        return  # a fold that merges many ids would match anything
    found = _folded(here, difference.here)
    if not difference.merges and len(set(found.values())) < DISTINCT * len(found):
        return
    for group, ids in here.items():
        by_fold = {known[id_]: id_ for id_ in there.get(group, ())}
        by_fold.pop("", None)
        for id_ in ids:
            if (match := by_fold.get(found[id_])) is not None:
                yield id_, match


def _folded(side: Ids, fold: Fold) -> dict[str, str]:
    """Each id, and what a fold makes of it."""
    return {id_: fold(id_) for id_ in {id_ for ids in side.values() for id_ in ids}}


def _affixes(here: Ids, there: Ids) -> Iterator[_Difference]:
    """A prefix or suffix that the ids of one side have and those of the other lack."""
    for longer, shorter, where in ((here, there, "run"), (there, here, "judgments")):
        ids = [id_ for group in longer.values() for id_ in group]
        known = {group: tuple(rests) for group, rests in shorter.items()}
        for kind, cuts, has, keeps, cut in (
            ("prefix", _prefixes, str.startswith, str.endswith, str.removeprefix),
            ("suffix", _suffixes, str.endswith, str.startswith, str.removesuffix),
        ):
            counts = Counter(
                affix
                for group, id_ in _sample(longer)
                # Most ids have none: one look at all rests takes less time than each cut.
                if len(rests := known.get(group, ())) > _LONGEST or keeps(id_, rests)
                for affix, rest in cuts(id_)
                if rest in shorter[group]
            )
            for affix, count in counts.most_common(1):
                if count > 1 and 2 * sum(has(id_, affix) for id_ in ids) >= len(ids):

                    def without(id_: str, cut: Cut = cut, affix: str = affix) -> str:
                        return cut(id_, affix)

                    folds = (without, str) if longer is here else (str, without)
                    yield _Difference(f"the {kind} {affix!r} of those in the {where}", *folds)


def _sample(side: Ids) -> Iterator[tuple[str, str]]:
    return islice(((group, id_) for group, ids in side.items() for id_ in ids), _SAMPLE)


def _prefixes(id_: str) -> Iterable[tuple[str, str]]:
    return ((id_[:at], id_[at:]) for at in range(1, min(len(id_), _LONGEST)))


def _suffixes(id_: str) -> Iterable[tuple[str, str]]:
    return ((id_[-at:], id_[:-at]) for at in range(1, min(len(id_), _LONGEST)))


def _without_chunk(id_: str) -> str:
    return re.sub(r"(?i)[#:_/.-]+(chunk|part|passage|p|c)?[#:_/.-]*[0-9]+$", "", id_)


def _number(id_: str) -> str:
    """The one number in an id; empty if there are none or several."""
    numbers = re.findall(r"[0-9]+", id_)
    return (numbers[0].lstrip("0") or "0") if len(numbers) == 1 else ""


def _unquoted(id_: str) -> str:
    """Without quotes or brackets around it, and without the b of Python's bytes."""
    bare = id_.strip()
    if bare.startswith(("b'", 'b"')):
        bare = bare[1:]
    return bare.strip("\"'`[](){}<> ")


def _all_folds(id_: str) -> str:
    for fold in _FOLDS.values():
        id_ = fold(id_)
    return id_


_FOLDS: dict[str, Fold] = {
    "upper and lower case": str.casefold,
    "spaces around them": str.strip,
    "URL encoding": unquote,
    "a decimal point, as of numbers (7.0 for 7)": partial(re.compile(r"\.0+$").sub, ""),
    "leading zeros": partial(re.compile(r"(?<![0-9.])0+(?=[0-9])").sub, ""),
    "the Unicode form of letters": partial(unicodedata.normalize, "NFKC"),
    "quotes or brackets around them": _unquoted,
}
