"""trec_eval compatibility: the order of its measures, and its named sets."""

from __future__ import annotations

from dataclasses import dataclass

from karat.measures.entry import Entry, Measure
from karat.measures.registry import spellings

# The order of the table in trec_eval's measures.c, in which it prints.
ORDER = (
    "NumQ", "NumRet", "NumRel", "NumRelRet", "AP", "GMAP", "Rprec", "Bpref", "RR", "IPrec", "P",
    "R", "infAP", "GMBpref", "RprecMult", "IPrec11", "DCG", "IDCG", "nDCG", "nDCG@", "AP@", "Rcap",
    "Success", "SetP", "SetRcap", "SetR", "SetAP", "SetF", "NumNonrelRet",
)  # fmt: skip
_OFFICIAL = (
    "NumQ", "NumRet", "NumRel", "NumRelRet", "AP", "GMAP", "Rprec", "Bpref", "RR", "IPrec", "P",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compat:
    """A version of trec_eval to reproduce to the last printed digit."""

    name: str  # as typed after `--compat`
    single_precision: bool  # scores are float32, so more of them tie
    rounding: str  # how IPrec and IPrec11 turn a recall level into a number of documents
    needs_every_topic: bool  # rejects a run that lacks a judged topic, unless `--complete`
    lists_missing: bool  # with `--complete`, prints lines for topics missing from the run


COMPAT = {
    compat.name: compat
    for compat in (
        Compat("trec_eval-9", True, "trec9", needs_every_topic=False, lists_missing=False),
        Compat("trec_eval-10", False, "nearest", needs_every_topic=True, lists_missing=True),
    )
}


def as_in(compat: Compat, measure: Measure) -> Measure:
    """The measure with the rounding of that version, if it has a rounding parameter."""
    if "rounding" not in measure.settings:
        return measure
    return Measure(measure.entry, measure.cutoff, {**measure.settings, "rounding": compat.rounding})


def named_set(name: str) -> list[tuple[Entry, float | None]]:
    """The entries and cutoffs of ``official`` (trec_eval's default) or ``all_trec``.

    ``all_trec`` is every measure of trec_eval 9 that karat has: not its experimental ones (G,
    binG, ndcg_rel, Rndcg), utility, relstring, nor preference and multi-assessor measures.
    """
    symbols = _OFFICIAL if name == "official" else ORDER
    known = spellings()
    out: list[tuple[Entry, float | None]] = []
    for symbol in symbols:
        entry = known[symbol.rstrip("@").casefold()]
        if symbol in {"DCG", "IDCG"}:
            continue  # trec_eval 10 alone has them
        if symbol.endswith("@") or not entry.trec:
            out += [(entry, cutoff) for cutoff in entry.trec_cutoffs]
        else:
            out.append((entry, None))
    return out


def in_trec_order(measures: list[Measure]) -> list[Measure]:
    """Measures in trec_eval's printing order, cutoffs ascending; others last, as given."""

    def place(measure: Measure) -> tuple[int, float]:
        symbol = measure.entry.symbol
        if measure.cutoff is not None and f"{symbol}@" in ORDER:
            symbol += "@"
        return (ORDER.index(symbol) if symbol in ORDER else len(ORDER), measure.cutoff or 0.0)

    return sorted(measures, key=place)
