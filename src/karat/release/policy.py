"""Policies: a team's rules for a release candidate."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from numbers import Integral, Real
from typing import Any, Literal

from karat.errors import InputError, UsageError, nearest
from karat.measures import Measure, parse

Evidence = Literal["observed", "interval"]
EVIDENCE: tuple[Evidence, ...] = ("observed", "interval")


@dataclass(frozen=True, slots=True)
class Drop:
    """How much worse a candidate may be."""

    size: float  # 0 or more: a share of the baseline if `relative`, else in the unit of the measure
    relative: bool  # whether it is a share of the baseline

    def __str__(self) -> str:
        return f"{100 * self.size:g}%" if self.relative else f"{self.size:g}"

    def said(self, limit: float) -> str:
        """The allowed drop, in words; ``limit`` is the same in the unit of the measure."""
        if not self.relative:
            return f"allowed {self.size:g}"
        return f"allowed {100 * self.size:g} % = {limit:.4f}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule about one measure; at least one of ``max_drop`` and ``least`` is given."""

    measure: Measure
    max_drop: Drop | None = None  # largest drop from the baseline; None without a limit
    # Least value of the candidate; None without a floor. For a measure that is better when lower,
    # the largest value.
    least: float | None = None
    # `observed`: the drop or value itself is compared · `interval`: its whole 95 % interval must be
    # within the limit
    evidence: Evidence = "observed"
    attribute: str | None = None  # the slicing attribute; None for all queries
    value: str | None = None  # one slice; None for each slice

    @property
    def lower(self) -> bool:
        """Whether less of the measure is better."""
        return self.measure.entry.direction == "lower"

    @property
    def drop_text(self) -> str:
        """The condition on the drop; empty without one."""
        if self.max_drop is None:
            return ""
        sure = ", surely" if self.evidence == "interval" else ""
        return f"{'worsens' if self.lower else 'drops'} by at most {self.max_drop}{sure}"

    @property
    def least_text(self) -> str:
        """The condition on the value itself; empty without one."""
        if self.least is None:
            return ""
        sure = ", surely" if self.evidence == "interval" else ""
        return f"is at {'most' if self.lower else 'least'} {self.least:g}{sure}"


@dataclass(frozen=True, slots=True)
class Health:
    """Conditions before any measure counts; None for no condition."""

    max_failed: float = 0.0  # most queries without an answer: a share below 1, or a count
    # Most queries not in the run: a share or a count. Some formats cannot represent queries without
    # results, so a few are allowed.
    max_missing: float = 0.05
    # Least mean Judged@k of each measure with a cutoff, 0 to 1; of the first 10 documents if no
    # measure has a cutoff
    min_judged: float | None = None
    min_queries: int | None = None  # least number of queries that count
    max_p95_ms: float | None = None  # largest 95th percentile of the times, in milliseconds
    # Least share of the queries without a right answer that have no results, 0 to 1
    min_silent: float | None = None
    max_empty: float | None = None  # most queries without results: a share or a count
    # Most queries with a duplicate document: a share or a count
    max_duplicates: float | None = None
    # Its largest rise from the baseline: a share of that, or milliseconds
    max_p95_increase: Drop | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A known failure."""

    query_id: str
    measure: Measure  # the measure by which it fails
    least: float  # it passes when its value reaches this
    reason: str = ""  # why it is on the list, in the team's words; empty without one


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules for a release candidate."""

    rules: tuple[Rule, ...]  # one or more rules
    health: Health  # conditions before any rule counts
    known_failures: tuple[Known, ...] = ()  # queries known to fail; rules exclude them
    source: str = "policy"  # its name in messages
    notes: tuple[str, ...] = ()  # what to change in it, in sentences
    # Whether it declares documents without a judgment not relevant; it does not change values or
    # conditions
    fully_judged: bool = False

    @property
    def measures(self) -> list[Measure]:
        """The measures of its rules and known failures, each once."""
        named = [rule.measure for rule in self.rules] + [k.measure for k in self.known_failures]
        return list(dict.fromkeys(named))

    @property
    def attributes(self) -> list[str]:
        """The slicing attributes of its rules, each once."""
        return list(dict.fromkeys(r.attribute for r in self.rules if r.attribute is not None))

    @property
    def content(self) -> tuple[object, ...]:
        """Its conditions as plain values: equal exactly for equal policies."""
        rules = [
            (
                str(rule.measure),
                None if rule.max_drop is None else astuple(rule.max_drop),
                rule.least,
                rule.evidence,
                rule.attribute,
                rule.value,
            )
            for rule in self.rules
        ]
        known = [(k.query_id, str(k.measure), k.least) for k in self.known_failures]
        return (tuple(rules), astuple(self.health), tuple(known))

    @property
    def needs_baseline(self) -> bool:
        """Whether anything in it compares with a baseline."""
        compared = any(rule.max_drop is not None for rule in self.rules)
        return compared or self.health.max_p95_increase is not None


_RULE = ("measure", "max_drop", "evidence", "min", "max", "slice", "each")
_SHARES = ("min_judged", "min_silent")
_BUDGETS = ("max_failed", "max_missing", "max_empty", "max_duplicates")
_HEALTH = (*_BUDGETS, *_SHARES, "min_queries", "max_p95_ms", "max_p95_increase", "p95_ms")
_KNOWN = ("query_id", "measure", "min", "reason", "query")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_PARTS = ("rule", "health", "known_failure", "fully_judged")


def policy_of(
    written: Mapping[str, Any], source: str = "policy", rel: float | None = None
) -> Policy:
    """A policy from parsed TOML or a dictionary.

    Args:
        written: ``rule`` (a list), and optionally ``health``, ``known_failure`` (a list) and
            ``fully_judged``.
        source: Its name in messages.
        rel: Lowest relevant grade, for measures without one.

    Raises:
        InputError: an unknown key (the nearest is named), a value of the wrong type or out of
            range, a rule without a condition, or no rules.
    """
    reader = _Reader(source, rel)
    unlike = isinstance(written, Mapping) and written
    if unlike and not any(nearest(str(key), _PARTS, 1) for key in written):
        few = ", ".join(map(repr, list(written)[:3]))
        raise reader.wrong(
            f"this is not a policy: its keys are {few}; expected {', '.join(_PARTS)}",
            "the policy comes first: karat.gate(policy, qrels, baseline, candidate)"
            if source == "policy"
            else '[[rule]] with measure = "nDCG@10" and max_drop = "5%"',
        )
    reader.refuse_unknown(written, _PARTS, "the policy")
    rules = tuple(
        reader.rule(each, f"rule {place}")
        for place, each in enumerate(reader.list_of(written, "rule"), start=1)
    )
    if not rules:
        raise InputError(
            "the policy has no rule, so it would pass anything",
            file=source,
            fix='[[rule]] with measure = "nDCG@10" and max_drop = "5%"',
        )
    known = tuple(
        reader.known(each, f"known failure {place}", rules[0].measure)
        for place, each in enumerate(reader.list_of(written, "known_failure"), start=1)
    )
    notes = []
    if any("query" in each for each in written.get("known_failure", [])):
        notes.append(f"{source}: the key query of [[known_failure]] is called query_id now")
    health = reader.health(written.get("health", {}))
    declared = reader.declared(written.get("fully_judged", False), health)
    return Policy(rules, health, known, source, tuple(notes), declared)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the parts of a policy, and reports errors with their location."""

    source: str
    rel: float | None

    def refuse_unknown(self, given: Any, known: Sequence[str], where: str) -> None:
        if not isinstance(given, Mapping):
            raise self.wrong(f"{where} is {given!r}, not a table of keys and values")
        for key in given:
            if key not in known:
                near = nearest(str(key), known, 1)
                raise self.wrong(
                    f"{where} has an unknown key {key!r}",
                    f"did you mean {near[0]}?" if near else f"keys: {', '.join(known)}",
                )

    def wrong(self, what: str, fix: str | None = None) -> InputError:
        return InputError(what, file=self.source, fix=fix)

    def list_of(self, given: Mapping[str, Any], key: str) -> list[Any]:
        value = given.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(f"{key} is one table", f"write [[{key}]], with two brackets")
        return value

    def declared(self, given: Any, health: Health) -> bool:
        """Whether the collection is declared fully judged."""
        if not isinstance(given, bool):
            raise self.wrong(f"fully_judged is {given!r}, not true or false", "fully_judged = true")
        if given and health.min_judged is not None:
            raise self.wrong(
                "min_judged requires judged documents, and fully_judged declares all judged",
                "remove one of the two",
            )
        return given

    def rule(self, given: Any, where: str) -> Rule:
        self.refuse_unknown(given, _RULE, where)
        measure = self.measure(given.get("measure"), where)
        lower = measure.entry.direction == "lower"
        floor, other = ("max", "min") if lower else ("min", "max")
        if other in given:
            raise self.wrong(
                f"{where}: {'less' if lower else 'more'} of {measure} is better, so {other} does "
                "not apply to it",
                f"{floor} = {given[other]}",
            )
        max_drop = self.drop(given["max_drop"], where) if "max_drop" in given else None
        least = self.number(given[floor], f"{where}: {floor}") if floor in given else None
        self.refuse_beyond(measure, max_drop, least, where)
        if max_drop is None and least is None:
            raise self.wrong(f"{where} has no condition", 'max_drop = "5%", or min = 0.8')
        evidence = given.get("evidence", "observed")
        if evidence not in EVIDENCE:
            raise self.wrong(f"{where}: evidence is {evidence!r}", f"one of {', '.join(EVIDENCE)}")
        attribute, value = self.slice(given, where)
        return Rule(measure, max_drop, least, evidence, attribute, value)

    def refuse_beyond(
        self, measure: Measure, max_drop: Drop | None, least: float | None, where: str
    ) -> None:
        """Refuse limits outside a measure's range: they would always fail, or always hold."""
        low, high = measure.entry.low, measure.entry.high
        lower = measure.entry.direction == "lower"
        if max_drop is not None and max_drop.relative and max_drop.size >= 1 and not lower:
            raise self.wrong(
                f'{where}: no drop is above 100 %, so max_drop = "{max_drop}" always holds',
                'max_drop = "5%"',
            )
        unit = max_drop.size if max_drop is not None and not max_drop.relative else 0.0
        if high is not None and unit >= high - low:
            raise self.wrong(
                f"{where}: {measure} is {low:g} to {high:g}, so no drop goes beyond {unit:g}",
                f'max_drop = "{unit if unit < 100 else 5:g}%"',
            )
        if least is None:
            return
        worst = high if lower else low
        if worst is not None and (least >= worst if lower else least <= worst):
            most = "most" if lower else "least"
            raise self.wrong(
                f"{where}: {measure} is {worst:g} at {most}, so {least:g} always holds",
                "a value that a bad run does not reach",
            )
        if lower and least < low:
            raise self.wrong(f"{where}: {measure} is {low:g} at least, so {least:g} always fails")
        if not lower and high is not None and least > high:
            raise self.wrong(f"{where}: {measure} is {high:g} at most, so {least:g} always fails")

    def measure(self, given: Any, where: str) -> Measure:
        if not isinstance(given, str):
            raise self.wrong(f"{where} has no measure", 'measure = "nDCG@10"')
        try:
            measure = parse(given, rel=self.rel)
        except UsageError as error:
            raise self.wrong(f"{where}: {error}") from None
        if measure.aggregate != "mean" or measure.entry.direction == "none":
            raise self.wrong(f"{where}: {measure} is not a mean with a direction", "use AP, say")
        return measure

    def drop(self, given: Any, where: str) -> Drop:
        if isinstance(given, str):
            match = _PERCENT.fullmatch(given)
            if match and float(match[1]) <= 100:
                return Drop(float(match[1]) / 100, relative=True)
            raise self.wrong(
                f"{where}: max_drop is {given!r}", 'max_drop = "5%" of the baseline, or 0.01'
            )
        size = self.number(given, f"{where}: max_drop")
        if size < 0:
            raise self.wrong(f"{where}: max_drop is {size:g}, below 0", "max_drop = 0.01")
        return Drop(size, relative=False)

    def slice(self, given: Mapping[str, Any], where: str) -> tuple[str | None, str | None]:
        one, each = given.get("slice"), given.get("each")
        if one is not None and each is not None:
            raise self.wrong(f"{where} has both slice and each", "leave out one")
        if each is not None:
            if not isinstance(each, str) or not each:
                raise self.wrong(f"{where}: each is {each!r}", 'each = "class"')
            return each, None
        if one is None:
            return None, None
        attribute, equals, value = str(one).partition("=")
        if not isinstance(one, str) or not equals or not attribute.strip():
            raise self.wrong(f"{where}: slice is {one!r}", 'slice = "class=name"')
        return attribute.strip(), value.strip()

    def health(self, given: Any) -> Health:
        self.refuse_unknown(given, _HEALTH, "health")
        if "p95_ms" in given and "max_p95_ms" in given:
            raise self.wrong("health has max_p95_ms, and p95_ms, its old name", "leave out p95_ms")
        named = {"max_p95_ms" if key == "p95_ms" else key: value for key, value in given.items()}
        increase = self.increase(named.pop("max_p95_increase", None))
        values = {key: self.health_number(key, value) for key, value in named.items()}
        for key, value in values.items():
            if value < 0 or (key in _SHARES and value > 1):
                raise self.wrong(f"health: {key} is {value:g}, out of its range")
        least = values.pop("min_queries", None)
        return Health(
            **values,
            min_queries=None if least is None else math.ceil(least),
            max_p95_increase=increase,
        )

    def health_number(self, key: str, given: Any) -> float:
        """A number, or a percentage for keys that accept a share."""
        share = _PERCENT.fullmatch(given) if isinstance(given, str) else None
        if share is None or key not in (*_BUDGETS, *_SHARES):
            return self.number(given, f"health: {key}")
        if key in _BUDGETS and float(share[1]) >= 100:
            raise self.wrong(f'health: {key} = "{given}" always holds', f'{key} = "5%"')
        return float(share[1]) / 100

    def increase(self, given: Any) -> Drop | None:
        if given is None:
            return None
        share = _PERCENT.fullmatch(given) if isinstance(given, str) else None
        if isinstance(given, str) and share is None:
            raise self.wrong(
                f"health: max_p95_increase is {given!r}",
                'max_p95_increase = "20%" of the baseline, or 50, in milliseconds',
            )
        size = float(share[1]) / 100 if share else self.number(given, "health: max_p95_increase")
        if size < 0:
            raise self.wrong(f"health: max_p95_increase is {size:g}, out of its range")
        return Drop(size, relative=share is not None)

    def known(self, given: Any, where: str, measure: Measure) -> Known:
        self.refuse_unknown(given, _KNOWN, where)
        if "query" in given and "query_id" in given:
            raise self.wrong(f"{where} has both query_id and query", "leave out query")
        query = given.get("query_id", given.get("query"))
        if not isinstance(query, str | Integral) or isinstance(query, bool) or query == "":
            raise self.wrong(f"{where} has no query_id", 'query_id = "q12"')
        if "measure" in given:
            measure = self.measure(given["measure"], where)
        if "min" not in given:
            raise self.wrong(f"{where} has no min, the value at which it passes", "min = 0.5")
        reason = given.get("reason", "")
        if not isinstance(reason, str):
            raise self.wrong(f"{where}: reason is {reason!r}, not text", 'reason = "no synonyms"')
        least = self.number(given["min"], f"{where}: min")
        return Known(str(query), measure, least, reason)

    def number(self, given: Any, where: str) -> float:
        if not isinstance(given, Real) or isinstance(given, bool) or not math.isfinite(given):
            raise self.wrong(f"{where} is {given!r}, not a number")
        return float(given)
