"""The registry of online metrics, by name in any spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from karat.errors import UsageError, nearest
from karat.measures.names import parse as offline
from karat.online.metrics import abandonment, clicks, outcomes, reading, service, zero
from karat.online.metrics.entry import Metric

DEFAULT: tuple[str, ...] = (
    "CTR",
    "MRCR",
    "ZeroResults",
    "Abandonment",
    "Reformulation",
    "SAT",
    "Dwell",
    "TimeToFirstClick",
    "SuccessPerSession",
    "SessionsPerUser",
    "Conversion",
    "Latency(p95)",
    "ErrorRate",
)
"""The metrics computed by default."""

FAMILIES: dict[str, str] = {
    "clicks": "clicks",
    "zero": "zero results",
    "abandonment": "abandonment",
    "reading": "click quality",
    "outcomes": "outcomes",
    "service": "service",
}
"""Families in the order in which they are shown, with their headings."""

_ALL = (
    *clicks.FAMILY,
    *zero.FAMILY,
    *abandonment.FAMILY,
    *reading.FAMILY,
    *outcomes.FAMILY,
    *service.FAMILY,
)
_BY_NAME = {metric.name.casefold(): metric for metric in _ALL}
_LIKE_PAPERS = re.compile(r"\s*([A-Za-z]+)\s*(?:\(([^()@]*)\))?\s*(?:@\s*(\S+))?\s*")
_LIKE_SHELL = re.compile(r"\s*([A-Za-z]+):([^:@()]+)\s*")
_DEEPEST = 1000
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "CTR": ("click rate", "searches with clicks"),
    "ClickPosition": ("average click position", "mean click position", "click rank"),
    "MRCR": ("average click position", "mean click position", "click MRR"),
    "ZeroResults": (
        "no-result rate", "no results", "null results", "null search rate", "zero hits", "empty",
    ),
    "Abandonment": ("no-click rate", "clickless searches", "exit rate"),
    "Reformulation": ("refinement rate", "query refinement"),
    "QuickBack": ("bounce rate", "bounce", "pogo-sticking", "short clicks"),
    "SAT": ("satisfied clicks", "long clicks", "success rate"),
    "Dwell": ("dwell time", "time on page", "time on document"),
    "TimeToFirstClick": ("time to click", "time to result"),
    "Conversion": ("conversion rate", "purchase rate"),
    "RevenuePerSearch": ("revenue", "sales per search"),
    "SessionsPerUser": ("retention", "return rate"),
    "Latency(p95)": ("response time", "search time", "duration"),
}  # fmt: skip
"""Names in other tools, in addition to the titles here."""
_CLOSE = 0.8  # similarity of two names in words


def all_metrics() -> list[Metric]:
    """Every metric once, family by family.

    Metrics with a number are included with the usual ones: ``CTR@5`` for every cutoff, and a few
    percentiles of the latency.
    """
    return list(_ALL)


def find(name: str) -> Metric:
    """The metric of a name.

    Args:
        name: Case-insensitive: ``CTR``, ``ctr@3``, ``PaulScore(F=0.9)``, or without quotes in a
            shell ``PaulScore:F=0.9``, ``Latency:p95``.

    Raises:
        UsageError: unknown metric; the nearest is named.
    """
    papers, shell = _LIKE_PAPERS.fullmatch(name), _LIKE_SHELL.fullmatch(name)
    if papers:
        base, inside, at = papers.groups()
    elif shell:
        base, inside, at = *shell.groups(), None
    else:
        _not_offline(name)
        raise UsageError(
            f"{name!r} is not the name of an online metric",
            nearest=_meant(name),
            fix="write it like CTR, CTR@5, 'Latency(p95)', or without quotes Latency:p95",
        )
    folded = base.casefold()
    inside = None if inside is None else _plain(inside)
    if at is not None:
        return _at(base, inside, at)
    key = folded if inside is None else f"{folded}({inside})"
    metric = _BY_NAME.get(key)
    if metric is not None:
        return metric
    if folded == "latency" and inside is not None:
        return _latency(inside)
    kin = [metric.name for metric in _ALL if metric.name.casefold().startswith(f"{folded}(")]
    if kin and folded not in _BY_NAME and inside is None:
        raise UsageError(f"{kin[0].partition('(')[0]} is one of {', '.join(kin)}", fix=kin[0])
    if kin:
        raise UsageError(
            f"unknown online metric {name.strip()!r}; similar ones are {', '.join(kin)}",
            nearest=nearest(key, kin, 1),
        )
    if folded in _BY_NAME:
        metric = _BY_NAME[folded]
        raise UsageError(f"{metric.name} has no parameters in brackets", fix=metric.name)
    _not_offline(name)
    raise _unknown(name)


def find_all(names: Sequence[str]) -> list[Metric]:
    """The metrics of several names, each once, in the order first named."""
    return list({metric.name: metric for metric in map(find, names)}.values())


def _plain(inside: str) -> str:
    """The text in brackets in canonical form: no blanks or quotes, numbers as 0.9."""
    text = re.sub(r"[\s'\"]", "", inside).casefold()
    name, equals, number = text.rpartition("=")
    try:
        return f"{name}{equals}{float(number)}" if equals else text
    except ValueError:
        return text


def _at(base: str, inside: str | None, at: str) -> Metric:
    if base.casefold() != "ctr" or inside is not None:
        if base.casefold() not in _BY_NAME:
            _not_offline(f"{base}@{at}")
            raise _unknown(base)
        raise UsageError(f"{base} has no cutoff; only CTR has one", fix="CTR@5")
    if not re.fullmatch(r"[1-9]\d{0,3}", at) or int(at) > _DEEPEST:
        raise UsageError(f"CTR@{at}: {at!r} is not a position from 1 to {_DEEPEST:,}", fix="CTR@5")
    return clicks.ctr_at(int(at))


def _latency(inside: str) -> Metric:
    match = _PERCENTILE.fullmatch(inside)
    if not match or not float(match[1]):
        raise UsageError(
            f"Latency({inside}): {inside!r} is not a percentile above p0 and below p100",
            fix="Latency:p95",
        )
    return service.latency(float(match[1]))


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _meant(name: str) -> list[str]:
    """The metrics with this name in words, here or in other tools, else the most similar names."""
    called: dict[str, list[str]] = {}
    for metric in _ALL:
        for words in (metric.title, *_ELSEWHERE.get(metric.name, ())):
            called.setdefault(_letters(words), []).append(metric.name)
    close = difflib.get_close_matches(_letters(name), called, n=1, cutoff=_CLOSE)
    if close:
        return list(dict.fromkeys(called[close[0]]))
    return nearest(name, [metric.name for metric in _ALL])


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"unknown online metric {name.strip()!r}",
        nearest=_meant(name),
        fix="see the catalogue of online metrics",
        command="karat online metrics",
    )


def _not_offline(name: str) -> None:
    try:
        offline(name)
    except UsageError:
        return
    raise UsageError(
        f"{name.strip()} is an offline measure: it needs judgments, not events",
        fix="evaluate a run for it; karat online against compares offline with online",
    )
