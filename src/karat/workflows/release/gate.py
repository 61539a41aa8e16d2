"""Gate: whether a candidate run passes a policy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from karat import formats
from karat.diagnosis.movement import moves
from karat.diagnosis.slices import Slice, slices_of, slices_of_queries
from karat.errors import InputError, UsageError, nearest
from karat.formats.own.policy import read_policy, write_policy
from karat.measures import Measure
from karat.measures.evidence import Mask
from karat.measures.run_pair import Pair
from karat.measures.scores import Scores
from karat.release.gate import (
    Doubt,
    Numbers,
    blind,
    drop_check,
    floor_check,
    overall,
    unless_worse,
)
from karat.release.health import Answers, health_checks, starter, unheld
from karat.release.policy import Policy, Rule, policy_of
from karat.stats import mean
from karat.stats.aggregation import Aggregation
from karat.stats.averages import Floats
from karat.stats.effects import TIED
from karat.stats.intervals import TRUSTED_FROM, shown, t_interval, value_range
from karat.stats.multiplicity import holm
from karat.stats.verdicts import LEVEL, Contrast, Testing
from karat.stats.weighing import Weighing
from karat.tables import Queries, Run
from karat.tables.about import AboutChange, not_recorded, sentence, what_changed
from karat.tables.comparison import RankChange
from karat.tables.notes import Concern, Note, in_order, prefixed
from karat.tables.release.baseline import SavedBaseline
from karat.tables.release.gate import WORST_FIRST, Check, Gate, KnownFailure, Regression
from karat.tables.results import QueryScores, Result
from karat.workflows.offline import inputs as readers
from karat.workflows.offline.evaluation_plan import (
    Conditions,
    EvaluationPlan,
    check_types,
    settle,
)
from karat.workflows.offline.notes import (
    of_bare,
    of_declared,
    of_run,
    of_unequal,
    of_waiting,
    of_weights,
)
from karat.workflows.offline.run_health import answers_of
from karat.workflows.release.baseline import (
    changed,
    folded,
    renewal,
    restored,
    saved_baseline_from,
)
from karat.workflows.workspace.fingerprints import fingerprint

MOST_REGRESSIONS = 10  # maximum number of queries listed for a check that did not pass


def gate(
    policy: Any,
    qrels: Any,
    baseline: Any,
    candidate: Any,
    *,
    queries: Any = None,
    documents: Any = None,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    collapse: str | None = None,
    scale: Any = None,
    part: str | None = None,
    fully_judged: bool = False,
    commit: str | None = None,
) -> Gate:
    """Check a candidate against a policy.

    Args:
        policy: A TOML file, its content as a dictionary, or a Policy.
        qrels: As ``evaluate`` takes them.
        baseline: A run, a baseline saved by ``save_baseline`` (its path), or None if no rule of
            the policy limits a drop.
        candidate: The candidate run.
        queries: As ``evaluate`` takes them; the following too.
        documents: Documents with attributes, for slices, or the chunks, for ``collapse``.
        rel: Lowest grade that counts as relevant, where a measure does not say.
        complete: Every query of the qrels counts.
        depth: Cut rankings after this many documents.
        collapse: Fold chunks into the document named in this column of ``documents``.
        scale: Lowest and highest possible grade.
        part: As in ``evaluate``; a saved baseline must be of the same part.
        fully_judged: Declare that documents without a judgment are not relevant; the policy can
            declare it too.
        commit: As in ``evaluate``: recorded with a use of the held-out part.

    Raises:
        InputError: the policy is invalid, or runs and judgments do not belong together.
        UsageError: a rule needs a baseline and there is none, or names an unknown slice.
    """
    wanted = policy_from(policy, rel)
    if fully_judged and wanted.health.min_judged is not None:
        raise UsageError(
            "the policy asks for min_judged, and fully_judged declares all documents judged",
            fix="leave out one of the two",
        )
    saved = saved_baseline_from(baseline)
    if baseline is None and wanted.needs_baseline:
        raise UsageError("the policy compares with a baseline, and none is given", fix="name one")
    stated = Conditions(
        rel,
        complete,
        depth,
        fully_judged=fully_judged or wanted.fully_judged,
        collapse=collapse,
        scale=scale,
    )
    chunks = documents if collapse is None else readers.documents(documents)
    asked = settle(
        qrels,
        _runs(candidate, baseline if saved is None else None),
        [str(measure) for measure in wanted.measures],
        stated,
        queries=queries,
        documents=chunks,
        by=wanted.attributes,
        part=part,
    )
    typed = {"documents": documents, "collapse": collapse, "scale": scale}
    typed |= (
        {"qrels": qrels, "queries": queries}
        if part is None
        else {"qrels": asked.qrels, "queries": asked.about}
    )
    fold = folded(asked.documents if chunks is None else chunks, collapse)
    judged = _Judged.of(wanted, asked, saved, fold, typed)
    now = judged.now
    found = judged.gate()
    # A run without answers shows no held-out value.
    answering = asked.given if now.run.answers.height else []
    shown = [(rule.attribute, rule.value) for rule in wanted.rules if rule.attribute is not None]
    used, together = asked.uses(shown, commit, answering)
    return replace(found, notes=[*used, *in_order([*together, *found.notes])])


def policy_from(policy: Any, rel: float | None) -> Policy:
    check_types(rel=rel)
    if isinstance(policy, str | Path):
        return read_policy(policy, rel)
    return policy if isinstance(policy, Policy) else policy_of(policy, rel=rel)


def _runs(candidate: Any, baseline: Any) -> list[Run]:
    """The candidate, and the baseline if it is a run; an empty file is a run without queries."""
    before, now = (
        formats.read_run(run, may_be_empty=True) if isinstance(run, str | Path) else run
        for run in (baseline, candidate)
    )
    first, *candidates = readers.named_runs(Run.from_dict({}) if before is None else before, now)
    if len(candidates) != 1:
        raise UsageError(f"expected one candidate, got {len(candidates)}", fix="candidate=one run")
    return candidates if before is None else [*candidates, first]


def _undecidable(check: Check) -> Check:
    """A check of a run whose document ids are not those of the judgments."""
    reason = "the ids of the documents are not those of the judgments"
    return replace(check, verdict="cannot_tell", reason=reason)


def _unusable(baseline: Answers | None) -> Doubt | None:
    """Why a baseline is unusable: it returned nothing, or its document ids are not judged ones."""
    if baseline is not None and baseline.foreign:
        return Doubt("cannot_tell", f"of the baseline {baseline.run}, {baseline.foreign}")
    if baseline is None or baseline.documents:
        return None
    return Doubt("cannot_tell", f"the baseline {baseline.run} returned nothing")


def _identical(
    hashes: Mapping[str, str | None], candidate: Answers, baseline: Answers | None
) -> Iterator[str]:
    """A note on a candidate with the baseline's answers: one of them is probably the wrong file."""
    if baseline is None or hashes["candidate"] != hashes["baseline"]:
        return
    shown = f"(SHA-256 {str(hashes['candidate'])[:12]}…)"
    known = not baseline.times_us or candidate.times_us == baseline.times_us
    if known and candidate.p95_us == baseline.p95_us:
        yield Note(
            f"candidate and baseline are the same run {shown}: one of them may be the wrong file",
            Concern.INPUT,
        )
    else:
        same = "candidate and baseline returned the same for every query"
        yield f"{same} {shown}, with other latencies"


@dataclass(frozen=True)
class _Judged:
    policy: Policy
    asked: EvaluationPlan
    now: Scores
    before: Scores | None
    saved: SavedBaseline | None
    hashes: dict[str, str | None]
    stale: str  # why a saved baseline is stale, or empty
    renewed: str  # how to save it again, or empty

    @classmethod
    def of(
        cls,
        policy: Policy,
        asked: EvaluationPlan,
        saved: SavedBaseline | None,
        fold: str | None,  # as `folded` returns it
        typed: Mapping[str, Any],  # as `renewal` takes it
    ) -> _Judged:
        now, *others = asked.scored
        before = others[0] if others else None
        hashes = {"qrels": fingerprint(asked.qrels), "queries": fingerprint(asked.about)}
        stale = renewed = ""
        if saved is not None:
            conditions = hashes | {"chunks": fold}
            stale = changed(saved, conditions, asked.rules, asked.conditions.collapse)
            before = restored(saved, now, asked, stale=bool(stale))
            if stale:
                command = renewal(saved, policy, asked, typed)
                renewed = f"; to save it again: {command} (RUN was {saved.run})"
        hashes |= {
            "policy": hashlib.sha256(repr(policy.content).encode()).hexdigest(),
            "candidate": fingerprint(now.run),
            "baseline": saved.hashes["run"]
            if saved
            else fingerprint(before.run if before else None),
        }
        return cls(policy, asked, now, before, saved, hashes, stale, renewed)

    @cached_property
    def weighing(self) -> Weighing:
        return Weighing.of(self.asked.about, self.now.evidence.query_ids)

    @cached_property
    def aggregation(self) -> Aggregation:
        return Aggregation(self.now, self.weighing, "t", None, bounds=False)

    @cached_property
    def known(self) -> Mask:
        """Mask of known failures; shape (n,)."""
        ids = {known.query_id for known in self.policy.known_failures}
        return np.array([query in ids for query in self.now.evidence.query_ids], np.bool_)

    @cached_property
    def answers(self) -> tuple[Answers, Answers | None]:
        """How both runs answered the queries."""
        before, saved = None, self.saved
        if self.before is not None:
            before = self._answers(self.before)
            if saved is not None:
                marked = {q: s for q, s in saved.answered.items() if q in before.marked}
                before = replace(
                    before,
                    p95_us=saved.p95_us,
                    times_us=saved.times_us,
                    marked=marked,
                    documents=1,
                    repeated=0,
                    foreign="",
                    errors={},
                    nothing="",
                )
        return self._answers(self.now), before

    def _answers(self, scores: Scores) -> Answers:
        qrels, measures = self.asked.qrels, self.policy.measures
        return answers_of(scores, qrels, self.known, measures, self.weighing)

    @cached_property
    def checked(self) -> list[tuple[Check, Mask]]:
        """The checks of all rules, with the queries each covers."""
        doubt = Doubt("stale", self.stale) if self.stale else _unusable(self.answers[1])
        checked = [each for rule in self.policy.rules for each in self.checks(rule, doubt)]
        if self.answers[0].foreign:
            checked = [(_undecidable(check), over) for check, over in checked]
        return checked

    def decided(self) -> tuple[list[Check], list[Regression]]:
        """All checks, the worst first, and the queries that lost most."""
        demands = health_checks(self.policy.health, *self.answers)
        checks = [*demands, *(check for check, _ in self.checked)]
        checks.sort(key=lambda check: WORST_FIRST.index(check.verdict))
        stale = next((at for at, check in enumerate(checks) if check.verdict == "stale"), None)
        if stale is not None:  # reported once, not with every rule
            checks[stale] = replace(checks[stale], reason=checks[stale].reason + self.renewed)
        if self.before is None or self.answers[0].foreign:
            return checks, []
        return checks, list(self.regressions(self.before))

    def gate(self) -> Gate:
        now, before, asked = self.now, self.before, self.asked
        checks, lost = self.decided()
        own = list(self.own())
        changes = []
        if before is not None and self.saved is None:
            changes = what_changed(before.run.about, [(now.run.name, now.run.about)])
        return Gate(
            verdict=overall(checks),
            baseline=None if before is None else before.run.name,
            candidate=now.run.name,
            policy=self.policy.source,
            checks=checks,
            lost=lost,
            known_failures=list(self.known_failures()),
            hashes=self.hashes,
            notes=list(self.notes(checks, changes)),
            results=own,
            fully_judged=asked.rules.fully_judged,
            scores=self.behind(own),
            meant=asked.meant,
            changes=changes,
            plan=asked,
        )

    def notes(self, checks: Sequence[Check], changes: Sequence[AboutChange]) -> Iterator[str]:
        asked, now, health = self.asked, self.now, self.policy.health
        yield from of_weights(now)
        yield from of_unequal(now, asked.about)
        yield from of_waiting(asked.waiting)
        yield from of_declared(asked.rules)
        for scores in asked.scored:
            for note in of_run(scores, asked.rules, asked.waiting):
                yield prefixed(f"{scores.run.name}: ", note)
        yield from of_bare(now)
        if self.renewed and all(check.verdict != "stale" for check in checks):
            yield Note(self.stale + self.renewed, Concern.INPUT)
        yield from _identical(self.hashes, *self.answers)
        if changes:
            yield f"what changed: {'; '.join(map(sentence, changes))}"
        if self.before is not None and self.saved is None:
            yield from not_recorded([(s.run.name, s.run.about) for s in (self.before, now)])
        yield from self.policy.notes
        yield from (Note(each, Concern.QUERIES) for each in unheld(health, *self.answers))
        yield from self.left_out()
        yield from (Note(each, Concern.FEW) for each in blind(checks))

    def checks(self, rule: Rule, doubt: Doubt | None) -> Iterator[tuple[Check, Mask]]:
        """The checks of a rule, over all queries or by slice, with the queries each covers."""
        for part in self._parts(rule):
            checks = self.demands(rule, part, doubt)
            failed = part.chosen & self.now.topics & (self.now.answered == "failed")
            if failed.any():
                # Timeouts on hard queries must not help: also check with the worst value.
                entry = rule.measure.entry
                worst_value = entry.low if entry.direction != "lower" else entry.high or 1e9
                values = self.now.values | {
                    rule.measure: np.where(failed, worst_value, self.now.values[rule.measure])
                }
                worst = replace(self, now=replace(self.now, values=values))
                at_worst = worst.demands(rule, part, doubt)
                pairs = zip(checks, at_worst, strict=True)
                checks = (unless_worse(check, other, int(failed.sum())) for check, other in pairs)
            for check in checks:
                yield check, part.chosen

    def demands(self, rule: Rule, part: Slice, doubt: Doubt | None) -> Iterator[Check]:
        if rule.max_drop is not None and self.before is not None:
            numbers = self._numbers(self.before, rule.measure, part)
            yield drop_check(rule, rule.max_drop, numbers, doubt)
        if rule.least is not None:
            yield floor_check(rule, rule.least, self._own(rule.measure, part))

    @cached_property
    def excluded(self) -> ExcludedQueries:
        """Why queries do not count."""
        known = frozenset(known.query_id for known in self.policy.known_failures)
        return ExcludedQueries(self.asked.about, self.now, known)

    def own(self) -> Iterator[Result]:
        """Results of the candidate: each measure over all queries and in the checked slices."""
        measures = {str(measure): measure for measure in self.policy.measures}
        parts = {(c.measure, c.attribute, c.slice): chosen for c, chosen in self.checked}
        parts |= {(name, None, None): self.now.overall for name in measures}
        for (name, attribute, value), chosen in parts.items():
            if name in measures:
                counting = chosen & self.now.topics & ~self.known
                yield self.aggregation.row(measures[name], counting, attribute, value)

    def behind(self, rows: Sequence[Result]) -> QueryScores:
        """The scores behind the candidate's means over all queries."""
        counting = self.now.topics & ~self.known & self.now.overall
        return self.aggregation.behind(rows, counting)

    def _parts(self, rule: Rule) -> list[Slice]:
        if rule.attribute is None:
            return [Slice(None, None, self.now.overall & ~self.known)]
        parts = self.slices[rule.attribute]
        if rule.value is None:
            # Slices without a query that counts are named in a note.
            counting = [part for part in parts if (part.chosen & self.now.topics).any()]
            return counting or [Slice(rule.attribute, "(any)", np.zeros_like(self.known))]
        chosen = [part for part in parts if part.value == rule.value]
        if chosen:
            return chosen
        values = [str(part.value) for part in parts]
        excluded_ids = self.excluded.by_slice(rule.attribute, values).get(rule.value)
        if excluded_ids:
            raise UsageError(
                f"no query of {rule.attribute} {rule.value!r} counts: "
                f"{self.excluded.why(excluded_ids)}",
                fix="remove the rule",
            )
        raise UsageError(
            f"no query has {rule.attribute} {rule.value!r}; there are {', '.join(values)}",
            nearest=nearest(rule.value, values, 1),
        )

    @cached_property
    def slices(self) -> dict[str, list[Slice]]:
        """The slices of each attribute used by a rule, without known failures."""
        both = [self.now] if self.before is None else [self.before, self.now]
        about, documents, qrels = self.asked.about, self.asked.documents, self.asked.qrels
        return {
            name: [
                Slice(name, value, chosen & ~self.known)
                for value, chosen in slices_of(about, name, both, documents, qrels)
            ]
            for name in self.policy.attributes
        }

    def left_out(self) -> Iterator[str]:
        """Notes on what no rule covers: known failures, if many, and slices that do not count."""
        topics = self.now.topics & self.now.overall
        count, known = int((topics & ~self.known).sum()), int((topics & self.known).sum())
        if known and (count < known or count < TRUSTED_FROM):
            counts = "counts" if count == 1 else "count"
            rest = "the other is a known failure"
            if known > 1:
                rest = f"the other {known:,} are known failures"
            yield f"{count:,} of {count + known:,} queries {counts}; {rest}, which no rule covers"
        each = [rule.attribute for rule in self.policy.rules if rule.value is None]
        for attribute in dict.fromkeys(name for name in each if name is not None):
            parts = self.slices[attribute]
            named = self.excluded.by_slice(attribute, [str(part.value) for part in parts])
            ids = np.array(self.now.evidence.query_ids)
            counting = {str(p.value) for p in parts if (p.chosen & self.now.topics).any()}
            others = {str(part.value): list(ids[part.chosen]) for part in parts} | dict(named)
            for value, query_ids in others.items():
                if value not in counting:
                    why = self.excluded.why(query_ids)
                    yield f"no rule covers {attribute} {value}: none of its queries counts ({why})"

    def _own(self, measure: Measure, part: Slice) -> Numbers:
        """The candidate's value in a slice, for a floor: independent of the baseline."""
        values = self.now.values[measure]
        used = part.chosen & ~np.isnan(values)
        if not used.any():
            return Numbers(0, None, attribute=part.attribute, slice=part.value)
        weights, strata = self.weighing.at(used)
        span = shown(t_interval(values[used], weights, strata), values[used], *value_range(measure))
        old = None if self.before is None else self.before.values[measure]
        same = old is not None and (part.chosen & ~np.isnan(old) == used).all()
        return Numbers(
            n=int(used.sum()),
            candidate_value=mean(values[used], weights),
            ci_low=span.low,
            ci_high=span.high,
            alike=_effective(weights),
            even=float(np.ptp(values[used])) <= TIED,
            baseline_value=mean(old[used], weights) if old is not None and same else None,
            attribute=part.attribute,
            slice=part.value,
        )

    def _numbers(self, before: Scores, measure: Measure, part: Slice) -> Numbers:
        """The difference from the baseline in a slice, for a limit on drops."""
        weighing = self.weighing
        testing = Testing("t", None, None, 100, 0, weighing)
        contrast = Contrast(before, self.now, measure)
        differences = contrast.difference[part.chosen & ~np.isnan(contrast.difference)]
        weights, _ = weighing.at(part.chosen & ~np.isnan(contrast.difference))
        [row] = testing.decided(testing.measured([contrast], part.chosen), holm, LEVEL)
        ends = [end if end is None else -contrast.sign * end for end in (row.ci_low, row.ci_high)]
        low, high = ends if contrast.sign < 0 else ends[::-1]
        return Numbers(
            n=row.n,
            candidate_value=row.candidate_value,
            baseline_value=row.baseline_value,
            drop=None if row.difference is None else -contrast.sign * row.difference + 0.0,
            ci_low=low,
            ci_high=high,
            smallest_detected=row.smallest_detected,
            alike=_effective(weights),
            even=bool(len(differences)) and float(np.ptp(differences)) <= TIED,
            attribute=part.attribute,
            slice=part.value,
        )

    def regressions(self, before: Scores) -> Iterator[Regression]:
        """The queries that lost most where a check did not pass, measure by measure."""
        now, asked = self.now, self.asked
        documents = self.saved is None  # a saved baseline has none
        texts = asked.about.texts() if asked.about else {}
        ids = now.evidence.query_ids
        evidence, depth = (before.evidence, now.evidence), asked.rules.depth
        for measure in asked.measures:
            contrast = Contrast(before, now, measure)
            gain = contrast.sign * contrast.difference
            failed: dict[int, Check] = {}
            broken = [
                (check, chosen)
                for check, chosen in self.checked
                if check.measure == str(measure) and check.verdict in ("fail", "cannot_tell")
            ]
            # A query is listed with the slice in which it regressed, if any.
            for check, chosen in sorted(broken, key=lambda pair: pair[0].attribute is None):
                within = np.where(chosen, gain, np.nan)
                order = np.argsort(within, kind="stable")[:MOST_REGRESSIONS]
                for index in order[within[order] < -TIED].tolist():
                    failed.setdefault(index, check)
            ordered = sorted(failed, key=lambda index: (gain[index], index))
            changes: dict[str, list[RankChange]] = {}
            if documents and ordered:
                pair = Pair(before.run, now.run, asked.qrels, *evidence, depth)
                for move in moves(measure, pair, ordered):
                    changes.setdefault(move.query_id, []).append(move)
            for index in ordered:
                old, new = (float(values[index]) for values in contrast.both)
                yield Regression(
                    measure=str(measure),
                    query_id=ids[index],
                    text=texts.get(ids[index]),
                    baseline_value=old,
                    candidate_value=new,
                    attribute=failed[index].attribute,
                    slice=failed[index].slice,
                    moves=changes.get(ids[index], []) if documents else None,
                )

    def known_failures(self) -> Iterator[KnownFailure]:
        place = {query: index for index, query in enumerate(self.now.evidence.query_ids)}
        for known in self.policy.known_failures:
            if known.query_id not in place:
                raise InputError(
                    f"the known failure {known.query_id} is not among the judged queries",
                    file=self.policy.source,
                    fix="remove it from the policy",
                )
            value = float(self.now.values[known.measure][place[known.query_id]])
            reached = None if np.isnan(value) else value
            lower = known.measure.entry.direction == "lower"
            passes = reached is not None and (
                reached <= known.least if lower else reached >= known.least
            )
            yield KnownFailure(known.query_id, str(known.measure), reached, passes, known.reason)


def _effective(weights: Floats | None) -> float | None:
    """Effective number of queries (Kish 1965); None if all weights are equal."""
    return None if weights is None else float(weights.sum() ** 2 / (weights**2).sum())


@dataclass(frozen=True)
class ExcludedQueries:
    """Why queries do not count."""

    queries: Queries | None  # the queries, if any were given
    scores: Scores  # scores of any run: the same queries count in all
    known: frozenset[str]  # ids of known failures

    def why(self, query_ids: Sequence[str]) -> str:
        """The number of queries by reason, such as ``3 marked no_answer``."""
        ids = self.scores.evidence.query_ids
        judged = set(ids)
        topics = {ids[index] for index in np.flatnonzero(self.scores.topics)}
        reasons = [
            "marked no_answer"
            if query in self.scores.rules.no_answer
            else "without judgments"
            if query not in judged
            else "known to fail"
            if query in self.known
            else "of weight 0"
            if query in self.scores.rules.zero_weight and query in topics
            else "without a relevant document"
            for query in query_ids
        ]
        return ", ".join(f"{reasons.count(reason):,} {reason}" for reason in dict.fromkeys(reasons))

    def by_slice(self, attribute: str, present: Sequence[str]) -> Mapping[str, list[str]]:
        """The queries of each slice by columns of the queries, judged or not.

        Args:
            attribute: The column to slice by, or several separated by commas.
            present: The slices of the queries that count. If numbers fall into other bands over
                all queries, the slices do not match and the result is empty.
        """
        if self.queries is None:
            return {}
        columns = set(self.queries.attributes)
        if attribute not in columns and not {*map(str.strip, attribute.split(","))} <= columns:
            return {}
        ids = self.queries.frame["query_id"]
        slices = {
            name: ids.filter(chosen).to_list()
            for name, chosen in slices_of_queries(self.queries, attribute)
        }
        return slices if set(present) <= set(slices) else {}


DEFAULT = "gate.toml"  # default file name of a policy


def start_policy(
    path: str | Path = DEFAULT, qrels: Any = None, baseline: Any = None, *, queries: Any = None
) -> str:
    """Write a starter policy; an existing file is never overwritten."""
    answers = None
    if baseline is not None:
        asked = settle(qrels, [baseline], ["nDCG@10", "AP"], queries=queries)
        [scores] = asked.scored
        none = np.zeros(scores.evidence.n, np.bool_)
        weighing = Weighing.of(asked.about, scores.evidence.query_ids)
        answers = answers_of(scores, asked.qrels, none, asked.measures, weighing)
    text = starter(answers)
    write_policy(text, path)
    return text
