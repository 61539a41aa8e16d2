"""Names of measures: read in many spellings, printed one way.

Read without regard to case: karat's own (``nDCG(gain=exp)@10``), ir_measures'
(``nDCG(dcg='exp-log2')@10``, ``nDCG(judged_only=True)@10``), trec_eval's (``ndcg_cut_10``,
``ndcg_cut.5,10``, ``map``), ndeval's (``alpha-nDCG@10``), plain words (``MRR@10``,
``HitRate@5``), and a form that needs no quotes in a shell (``nDCG:gain=exp@10``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from karat.errors import UsageError, nearest
from karat.measures.entry import REQUIRED, Entry, Measure, show_number
from karat.measures.registry import entries, spellings

DEFAULTS = ("nDCG@10", "RR@10", "P@10", "R@100", "AP")  # the measures computed by default

_LIKE_PAPERS = re.compile(
    r"\s*([A-Za-z0-9_-]+)\s*(?:\((.*)\))?\s*(?:@\s*([^\s@()]+))?\s*", re.DOTALL
)
_LIKE_SHELL = re.compile(r"\s*([A-Za-z0-9_-]+)((?::[^:@]+)+)(?:@([^\s@]+))?\s*")
_LIKE_TREC = re.compile(r"([A-Za-z0-9_]*?[A-Za-z])[_.](\d[\d.,]*)")
_AS_FUNCTION = re.compile(r"_at_(\d+)\s*\Z")  # recall_at_5, as functions are called
_DEEPEST = 8
# ir_measures' names of parameters.
_PARAMETER_ALIASES = {"dcg": "gain", "gains": "gain"}

_CUTOFFS: dict[str, tuple[str, Callable[[float], bool], str]] = {
    "required": ("a rank from 1", lambda k: k >= 1 and float(k).is_integer(), "10"),
    "recall": ("a recall level from 0 to 1", lambda k: 0 <= k <= 1, "0.1"),
    "multiple": ("a multiple of R above 0", lambda k: 0 < k < math.inf, "2"),
}


def parse(text: str, *, rel: float | None = None) -> Measure:
    """One measure from its name.

    Args:
        text: The name, in any spelling above.
        rel: The lowest relevant grade, for measures that have this parameter and do not set it.

    Raises:
        UsageError: an unknown name, parameter or value, or a missing one; suggests the nearest.
    """
    measures = parse_all([text], rel=rel)
    if len(measures) > 1:
        raise UsageError(f"expected one measure, and {text} names {len(measures)}")
    return measures[0]


def lower_is_better(name: str) -> bool:
    """Whether lower values of a measure are better; False for an unknown name."""
    try:
        return parse(name).entry.direction == "lower"
    except UsageError:
        return False


def parse_all(
    texts: Iterable[str], *, rel: float | None = None, trec: bool = False
) -> list[Measure]:
    """Measures from their names, each once, in the order first named.

    Args:
        texts: Names; trec_eval's families name several measures (``P.5,10``, ``ndcg_cut``).
        rel: As in ``parse``.
        trec: Read a name that both trec_eval and karat use as trec_eval does (``P`` is all of
            its cutoffs), and the sets ``official`` and ``all_trec``.
    """
    if rel is not None and not 0 < rel < math.inf:
        raise UsageError(f"rel={rel:g} is not a number above 0")
    measures: dict[Measure, None] = {}
    for text in texts:
        if text.count("(") > _DEEPEST:
            raise UsageError(f"measures nested {text.count('(')} deep; at most {_DEEPEST}")
        for measure in _read(text, rel, trec):
            measures.setdefault(measure)
    return list(measures)


def _read(text: str, rel: float | None, trec: bool) -> list[Measure]:
    if text.strip().casefold() in {"all_trec", "official"}:
        from karat.measures.trec import named_set

        return [settle(entry, cutoff, {}, rel) for entry, cutoff in named_set(text.strip())]
    text = _AS_FUNCTION.sub(r"@\1", text)
    from_trec = _read_trec(text.strip(), trec)
    if from_trec is not None:
        entry, cutoffs = from_trec
        return [settle(entry, cutoff, {}, rel) for cutoff in cutoffs]
    papers, shell = _LIKE_PAPERS.fullmatch(text), _LIKE_SHELL.fullmatch(text)
    outer = spellings().get(text.partition(":")[0].strip().casefold())
    if not papers and outer and any(parameter.name == "of" for parameter in outer.parameters):
        raise UsageError(
            f"{outer.symbol} takes another measure, in brackets",
            fix=f"'{outer.example.measure}'" if outer.example else None,
        )
    if papers:
        name, inside, at = papers.groups()
        parts = _split(inside or "")
    elif shell:
        name, inside, at = shell.groups()
        parts = inside[1:].split(":")
    else:
        raise UsageError(
            f"{text!r} is not the name of a measure",
            fix="write it like nDCG@10, P(rel=2)@5, or without quotes nDCG:gain=exp@10",
        )
    entry = _named(name)
    parts, condensed = _judged_only(parts)
    measure = settle(entry, at, _settings(entry, parts, rel), rel)
    return [settle(_named("Condensed"), None, {"of": measure}) if condensed else measure]


def _judged_only(parts: list[str]) -> tuple[list[str], bool]:
    """Parameters without ir_measures' ``judged_only``, and whether that is True."""
    others, condensed = [], False
    for part in parts:
        name, _, value = part.partition("=")
        if name.strip().casefold() != "judged_only":
            others.append(part)
        elif value.strip().casefold() in {"true", "false"}:
            condensed = value.strip().casefold() == "true"
        else:
            raise UsageError(f"judged_only={value.strip()} is not True or False")
    return others, condensed


def settle(
    entry: Entry, cutoff: str | float | None, given: dict[str, Any], rel: float | None = None
) -> Measure:
    """An entry with its cutoff and parameters checked and completed.

    Raises:
        UsageError: a cutoff that is missing, not supported or out of range, or a missing parameter
            that has no default.
    """
    at = _cutoff(entry, cutoff)
    settings: dict[str, Any] = {}
    for parameter in entry.parameters:
        if parameter.name in given:
            settings[parameter.name] = given[parameter.name]
        elif parameter.name == "rel" and rel is not None:
            settings["rel"] = float(rel)
        elif parameter.default is REQUIRED:
            raise UsageError(
                f"{entry.symbol} needs {parameter.name}: {parameter.meaning}; the result depends "
                "on it, so it has no default",
                fix=f"{entry.example.measure}" if entry.example else None,
            )
        else:
            settings[parameter.name] = parameter.default
    if entry.check:
        entry.check(settings)
    return Measure(entry, at, settings)


def _settings(entry: Entry, parts: list[str], rel: float | None) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    names = {parameter.name for parameter in entry.parameters}
    for part in parts:
        name, equals, value = part.partition("=")
        name = name.strip()
        if (not equals or "(" in name) and "of" in names and "of" not in settings:
            name, value = "of", part
        elif not equals:
            raise UsageError(
                f"{entry.symbol}: {part.strip()!r} is not a parameter",
                fix="write parameters as name=value",
            )
        alias = _PARAMETER_ALIASES.get(name.casefold())
        name = alias if alias in names else name.casefold()
        parameter = entry.parameter(name)
        if name in settings:
            raise UsageError(f"{entry.symbol}: duplicate parameter {name}")
        try:
            typed = value.strip().strip("'\"")
            settings[name] = parse(typed, rel=rel) if name == "of" else parameter.read(typed)
        except ValueError as error:
            raise UsageError(
                f"{entry.symbol}: {name}={value.strip()} is not {_allowed(error)}"
            ) from None
    return settings


def _allowed(error: ValueError) -> str:
    text = str(error)
    return "a number" if text.startswith(("could not convert", "invalid literal")) else text


def _cutoff(entry: Entry, cutoff: str | float | None) -> float | None:
    if cutoff is None:
        if entry.cutoff in _CUTOFFS:
            expected, _, typical = _CUTOFFS[entry.cutoff]
            fix = f"{entry.symbol}@{typical}"
            over_all = spellings().get(f"set{entry.symbol}".casefold())
            if over_all is not None:
                fix += f", or {over_all.symbol} over all documents returned"
            raise UsageError(f"{entry.symbol} needs {expected}", fix=fix)
        return None
    if entry.cutoff == "none":
        outer = any(parameter.name == "of" for parameter in entry.parameters)
        fix = f"{entry.symbol}(nDCG@{cutoff})" if outer else f"write {entry.symbol}"
        raise UsageError(f"{entry.symbol} takes no cutoff", fix=fix)
    expected, allowed, _ = _CUTOFFS["required" if entry.cutoff == "optional" else entry.cutoff]
    try:
        value = math.nan if isinstance(cutoff, str) and "_" in cutoff else float(cutoff)
    except ValueError:
        value = math.nan
    if not allowed(value):
        raise UsageError(f"{entry.symbol}@{cutoff}: {cutoff!r} is not {expected}")
    return value


def lookup(text: str) -> Entry:
    """The entry of a name, with or without a cutoff and parameters.

    Raises:
        UsageError: an unknown name; suggests the nearest.
    """
    name = re.split(r"[(:@]", text.strip(), maxsplit=1)[0].strip()
    from_trec = _read_trec(name, trec=False)
    return from_trec[0] if from_trec else _named(name)


def _named(name: str) -> Entry:
    known = spellings()
    if name.casefold() in known:
        return known[name.casefold()]
    if (joined := name.casefold().replace("_", "")) in known:  # hit_rate
        return known[joined]
    by_trec = _trec_names()
    if name.casefold() in by_trec:
        return by_trec[name.casefold()]
    printed = {entry.symbol: None for entry in entries()}
    printed |= {alias: None for entry in entries() for alias in entry.aliases}
    raise UsageError(
        f"unknown measure {name!r}",
        nearest=nearest(name, printed),
        fix="see the catalogue of measures",
        command="karat measures",
    )


def _split(inside: str) -> list[str]:
    """Cut at commas that are not inside brackets or quotes."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(inside):
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append(inside[start:place])
            start = place + 1
    parts.append(inside[start:])
    return [part for part in parts if part.strip()]


def _trec_names() -> dict[str, Entry]:
    return {e.trec.casefold(): e for e in entries() if e.trec} | {
        _family(e).casefold(): e for e in entries() if e.trec_at
    }


def _family(entry: Entry) -> str:
    assert entry.trec_at is not None
    return entry.trec_at.removesuffix("_{k}")


def _read_trec(text: str, trec: bool) -> tuple[Entry, list[float | None]] | None:
    """An entry and its cutoffs, if the text is one of trec_eval's names."""
    folded = text.casefold()
    for entry in entries():
        if entry.trec is not None and folded == entry.trec.casefold():
            return entry, [None]
    families = {_family(e).casefold(): e for e in entries() if e.trec_at}
    if folded in families and (trec or folded not in spellings()):
        return families[folded], list(families[folded].trec_cutoffs)
    match = _LIKE_TREC.fullmatch(text)
    if match and match.group(1).casefold() in families:
        entry = families[match.group(1).casefold()]
        try:
            cutoffs: list[float | None] = [*sorted(map(float, match.group(2).split(",")))]
        except ValueError:
            return None
        return entry, cutoffs
    return None


def trec_name(measure: Measure) -> str:
    """The name that trec_eval prints for a measure; karat's own if trec_eval has none."""
    entry = measure.entry
    if measure.cutoff is None and entry.trec:
        return entry.trec
    if measure.cutoff is not None and entry.trec_at:
        at = show_number(measure.cutoff) if measure.depth is not None else f"{measure.cutoff:3.2f}"
        return entry.trec_at.format(k=at)
    return str(measure)
