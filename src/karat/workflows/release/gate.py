"""Gate: may this candidate ship, by what the team wrote down."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from karat import formats
from karat.diagnosis.slices import Slice, slices_of
from karat.errors import InputError, UsageError, nearest
from karat.formats.own.policy import read_policy
from karat.measures import Measure
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.release.gate import (
    Doubt,
    Numbers,
    Own,
    blind,
    drop_check,
    floor_check,
    overall,
    unless_worse,
)
from karat.release.health import Answers, health_checks, unheld
from karat.release.policy import Policy, Rule, policy_of
from karat.stats import mean
from karat.stats.aggregation import Aggregation
from karat.stats.averages import Floats
from karat.stats.effects import TIED
from karat.stats.intervals import TRUSTED_FROM, shown, t_interval, value_range
from karat.stats.multiplicity import holm
from karat.stats.verdicts import LEVEL, Contrast, Testing
from karat.stats.weighing import Weighing
from karat.tables import Documents, Run
from karat.tables.about import not_recorded, sentence, what_changed
from karat.tables.notes import Concern, Note, in_order, prefixed
from karat.tables.release.baseline import SavedBaseline
from karat.tables.release.gate import WORST_FIRST, Check, Gate, KnownFailure
from karat.tables.results import QueryScores, Result
from karat.workflows.offline import inputs as given
from karat.workflows.offline.evaluation_plan import EvaluationPlan, check_types, settle
from karat.workflows.offline.notes import (
    of_bare,
    of_declared,
    of_run,
    of_unequal,
    of_waiting,
    of_weights,
)
from karat.workflows.offline.parts import of_parts, within
from karat.workflows.offline.run_health import answers_of
from karat.workflows.release._excluded_queries import Uncounted
from karat.workflows.release._regressions import lost
from karat.workflows.release.baseline import (
    changed,
    folded,
    renewal,
    restored,
    save_baseline,
    saved_in,
)
from karat.workflows.workspace.fingerprints import fingerprint

__all__ = ["gate", "save_baseline"]


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
    """Hold a candidate against a policy.

    Args:
        policy: A TOML file, what one holds as a dictionary, or a Policy.
        qrels: As ``evaluate`` takes them.
        baseline: A run, a baseline saved by ``save_baseline`` (its path), or None if no rule of
            the policy is about a drop.
        candidate: The run in question.
        queries: As ``evaluate`` takes them; the following too.
        documents: Their attributes, for slices, or the chunks, for ``collapse``.
        rel: Lowest grade that counts as relevant, where a measure does not say.
        complete: Every query of the qrels counts.
        depth: Cut rankings after so many documents.
        collapse: Fold chunks into the document named in this column of ``documents``.
        scale: Lowest and highest grade that a judgment can give.
        part: As in ``evaluate``; a saved baseline must be of the same part.
        fully_judged: Declare that documents without a judgment are not relevant; the policy can do
            so too.
        commit: As in ``evaluate``: to be recorded with a use of the held-out part.

    Raises:
        InputError: the policy is none, or runs and judgments do not belong together.
        UsageError: a rule needs a baseline and there is none, or a slice that there is not.
    """
    wanted = policy_from(policy, rel)
    if fully_judged and wanted.health.min_judged is not None:
        raise UsageError(
            "the policy asks for min_judged, and fully_judged declares all documents judged",
            fix="leave out one of the two",
        )
    saved = saved_in(baseline)
    if baseline is None and wanted.needs_baseline:
        raise UsageError("there is no baseline, and the policy compares with one", fix="name one")
    held = given.documents_for(wanted.attributes, documents, qrels)
    chunks = held
    if chunks is None and collapse is not None:
        chunks = given.documents(documents)
    runs, part_of = _runs(candidate, baseline if saved is None else None), None
    if part is not None:
        part_of = within(part, qrels, runs, queries)
        qrels, runs, queries = part_of.qrels, part_of.runs, part_of.queries
    asked = settle(
        qrels,
        runs,
        [str(measure) for measure in wanted.measures],
        queries=queries,
        documents=documents if chunks is None else chunks,
        rel=rel,
        complete=complete,
        depth=depth,
        collapse=collapse,
        scale=scale,
        fully_judged=fully_judged or wanted.fully_judged,
    )
    scored = asked.scored()
    now = scored[0]
    inputs = {"qrels": fingerprint(asked.qrels), "queries": fingerprint(asked.about)}
    what = ""
    if saved is not None:
        folds = {"chunks": folded(chunks, collapse)}
        what = changed(saved, inputs | folds, asked.rules, collapse)
        before: Scores | None = restored(saved, now, asked, stale=bool(what))
    else:
        before = scored[1] if scored[1:] else None
    hashes = inputs | {
        "policy": hashlib.sha256(repr(wanted.content).encode()).hexdigest(),
        "candidate": fingerprint(now.run),
        "baseline": saved.hashes["run"] if saved else fingerprint(before.run if before else None),
    }
    judged = _Judged(wanted, asked, now, before, held)
    answers = judged.answers(saved)
    doubt = _dead(answers[1])
    renewed = ""
    if saved is not None and what:
        doubt = Doubt("stale", what)
        typed = {"qrels": qrels, "queries": queries, "documents": documents}
        typed |= {"collapse": collapse, "scale": scale}
        renewed = f"; to save it anew: {renewal(saved, wanted, asked, typed)} (RUN was {saved.run})"
    held_against = [each for rule in wanted.rules for each in judged.checks(rule, doubt)]
    if answers[0].foreign:
        held_against = [(_unknowable(check), over) for check, over in held_against]
    checks = [
        *health_checks(wanted.health, *answers),
        *(check for check, _ in held_against),
    ]
    checks.sort(key=lambda check: WORST_FIRST.index(check.verdict))
    stale = next((at for at, check in enumerate(checks) if check.verdict == "stale"), None)
    if stale is not None:  # said once, and not with every rule
        checks[stale] = replace(checks[stale], reason=checks[stale].reason + renewed)
    stale_note = [doubt.reason + renewed] if renewed and doubt and stale is None else []
    own = list(judged.own(held_against))
    waiting = asked.waiting
    # Without answers it is a rehearsal, or a run that failed: it shows no held-out value.
    answering = runs if now.run.answers.height else []
    shown = [(rule.attribute, rule.value) for rule in wanted.rules if rule.attribute is not None]
    used, together = of_parts(asked.about, asked.qrels, answering, shown, commit)
    if part_of is not None and answering:
        used = part_of.used(commit=commit)
    changes, unrecorded = [], []
    if before is not None and saved is None:
        changes = what_changed(before.run.about, [(now.run.name, now.run.about)])
        unrecorded = not_recorded([(s.run.name, s.run.about) for s in (before, now)])
    return Gate(
        verdict=overall(checks),
        baseline=None if before is None else before.run.name,
        candidate=now.run.name,
        policy=wanted.source,
        checks=checks,
        lost=[]
        if before is None or answers[0].foreign
        else list(lost(before, now, asked, held_against, documents=saved is None)),
        known_failures=list(judged.known_failures()),
        hashes=hashes,
        notes=[
            *used,
            *in_order(
                [
                    *together,
                    *of_weights(now),
                    *of_unequal(now, asked.about),
                    *of_waiting(waiting),
                    *of_declared(asked.rules),
                    *(
                        prefixed(f"{s.run.name}: ", note)
                        for s in scored
                        for note in of_run(s, asked.rules, waiting)
                    ),
                    *of_bare(now),
                    *(Note(each, Concern.INPUT) for each in stale_note),
                    *_same(hashes, *answers),
                    *([f"what changed: {'; '.join(map(sentence, changes))}"] if changes else []),
                    *unrecorded,
                    *wanted.notes,
                    *(Note(each, Concern.QUERIES) for each in unheld(wanted.health, *answers)),
                    *judged.left_out(),
                    *(Note(each, Concern.FEW) for each in blind(checks)),
                ]
            ),
        ],
        results=own,
        fully_judged=asked.rules.fully_judged,
        scores=judged.behind(own),
        meant=asked.meant,
        changes=changes,
    )


def policy_from(policy: Any, rel: float | None) -> Policy:
    """A policy from whatever ``gate`` takes.

    Raises:
        InputError: it cannot be read, or is none.
        UsageError: ``rel`` is no number.
    """
    check_types(rel=rel)
    if isinstance(policy, str | Path):
        return read_policy(policy, rel)
    return policy if isinstance(policy, Policy) else policy_of(policy, rel=rel)


def _runs(candidate: Any, baseline: Any) -> list[Run]:
    """The candidate, and the baseline if it is a run; an empty file is a run without a query."""
    before, now = (
        formats.read_run(run, may_be_empty=True) if isinstance(run, str | Path) else run
        for run in (baseline, candidate)
    )
    first, *found = given.named_runs(Run.from_dict({}) if before is None else before, now)
    if len(found) != 1:
        raise UsageError(f"{len(found)} candidates, and a gate holds one", fix="candidate=one run")
    return found if before is None else [*found, first]


def _unknowable(check: Check) -> Check:
    """A rule over documents that have other ids than the judged ones: a drop that is none."""
    reason = "the ids of the documents are not those of the judgments"
    return replace(check, verdict="cannot_tell", reason=reason)


def _dead(baseline: Answers | None) -> Doubt | None:
    """What speaks against a baseline of whose documents none counts: every rise from there is one.

    Of one that returned nothing, or whose documents have other ids than the judged ones.
    """
    if baseline is not None and baseline.foreign:
        return Doubt("cannot_tell", f"of the baseline {baseline.run}, {baseline.foreign}")
    if baseline is None or baseline.documents:
        return None
    return Doubt("cannot_tell", f"the baseline {baseline.run} returned nothing")


def _same(
    hashes: Mapping[str, str | None], candidate: Answers, baseline: Answers | None
) -> Iterator[str]:
    """A sentence on a candidate that is its own baseline: most likely one of them is a slip."""
    if baseline is None or hashes["candidate"] != hashes["baseline"]:
        return
    shown = f"(SHA-256 {str(hashes['candidate'])[:12]}…)"
    known = not baseline.times_us or candidate.times_us == baseline.times_us
    if known and candidate.p95_us == baseline.p95_us:
        yield Note(
            f"candidate and baseline are the same run {shown}: perhaps one of them is the wrong "
            "file",
            Concern.INPUT,
        )
    else:
        yield f"candidate and baseline returned the same for every query {shown}, in other times"


@dataclass(frozen=True)
class _Judged:
    """A candidate, and what it is held against."""

    policy: Policy
    asked: EvaluationPlan
    now: Scores
    before: Scores | None
    documents: Documents | None

    @cached_property
    def weighing(self) -> Weighing:
        """What each judged query counts for."""
        return Weighing.of(self.asked.about, self.now.evidence.query_ids)

    @cached_property
    def known(self) -> Mask:
        """Queries that are known to fail; shape (n,)."""
        ids = {known.query_id for known in self.policy.known_failures}
        return np.array([query in ids for query in self.now.evidence.query_ids], np.bool_)

    def answers(self, saved: SavedBaseline | None) -> tuple[Answers, Answers | None]:
        """What became of the queries in both runs."""
        before = None
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

    def checks(self, rule: Rule, doubt: Doubt | None) -> Iterator[tuple[Check, Mask]]:
        """A rule, over all queries or slice by slice, and which queries it is over."""
        for part in self._parts(rule):
            found = self.demands(rule, part, doubt)
            failed = part.chosen & self.now.topics & (self.now.answered == "failed")
            if failed.any():
                # Timing out on what is hard must not help: it must hold at the worst value too.
                entry = rule.measure.entry
                worst_value = entry.low if entry.direction != "lower" else entry.high or 1e9
                values = self.now.values | {
                    rule.measure: np.where(failed, worst_value, self.now.values[rule.measure])
                }
                worst = replace(self, now=replace(self.now, values=values))
                at_worst = worst.demands(rule, part, doubt)
                pairs = zip(found, at_worst, strict=True)
                found = (unless_worse(check, other, int(failed.sum())) for check, other in pairs)
            for check in found:
                yield check, part.chosen

    def demands(self, rule: Rule, part: Slice, doubt: Doubt | None) -> Iterator[Check]:
        """One check for each demand a rule makes of a slice."""
        if rule.max_drop is not None and self.before is not None:
            numbers = self._numbers(self.before, rule.measure, part)
            yield drop_check(rule, rule.max_drop, numbers, doubt)
        if rule.least is not None:
            yield floor_check(rule, rule.least, self._own(rule.measure, part))

    @cached_property
    def uncounted(self) -> Uncounted:
        """Why queries do not count."""
        known = frozenset(known.query_id for known in self.policy.known_failures)
        return Uncounted(self.asked.about, self.now, known)

    def own(self, held_against: Sequence[tuple[Check, Mask]]) -> Iterator[Result]:
        """The candidate by itself: each measure over all queries, and where a rule slices."""
        row = Aggregation(self.now, self.weighing, "t", None, bounds=False).row
        measures = {str(measure): measure for measure in self.policy.measures}
        counting = self.now.topics & ~self.known
        whole = counting & self.now.overall
        parts = {(c.measure, c.attribute, c.slice): chosen for c, chosen in held_against}
        parts |= {(name, None, None): whole for name in measures}
        for (name, attribute, value), chosen in parts.items():
            if name in measures:
                yield row(measures[name], chosen & counting, attribute, value)

    def behind(self, rows: Sequence[Result]) -> QueryScores:
        """What the means of the candidate over all queries are of."""
        whole = self.now.topics & ~self.known & self.now.overall
        return Aggregation(self.now, self.weighing, "t", None, bounds=False).behind(rows, whole)

    def _parts(self, rule: Rule) -> list[Slice]:
        if rule.attribute is None:
            return [Slice(None, None, self.now.overall & ~self.known)]
        parts = self.slices[rule.attribute]
        if rule.value is None:
            # Slices of which no query counts are named in a note; a rule without any is not held.
            counting = [part for part in parts if (part.chosen & self.now.topics).any()]
            return counting or [Slice(rule.attribute, "(any)", np.zeros_like(self.known))]
        chosen = [part for part in parts if part.value == rule.value]
        if chosen:
            return chosen
        values = [str(part.value) for part in parts]
        held = self.uncounted.named(rule.attribute, values).get(rule.value)
        if held:
            raise UsageError(
                f"the queries of {rule.attribute} {rule.value!r} count in no mean: "
                f"{self.uncounted.why(held)}",
                fix="leave the rule out",
            )
        raise UsageError(
            f"no query has {rule.attribute} {rule.value!r}; there are {', '.join(values)}",
            nearest=nearest(rule.value, values, 1),
        )

    @cached_property
    def slices(self) -> dict[str, list[Slice]]:
        """The slices of each attribute that a rule slices by, without what is known to fail."""
        both = [self.now] if self.before is None else [self.before, self.now]
        asked = self.asked
        return {
            name: [
                Slice(name, value, chosen & ~self.known)
                for value, chosen in slices_of(asked.about, name, both, self.documents, asked.qrels)
            ]
            for name in self.policy.attributes
        }

    def left_out(self) -> Iterator[str]:
        """What no rule says anything about: known failures, if many, and slices that count not."""
        topics = self.now.topics & self.now.overall
        count, known = int((topics & ~self.known).sum()), int((topics & self.known).sum())
        if known and (count < known or count < TRUSTED_FROM):
            counts = "counts" if count == 1 else "count"
            rest = "the other is a known failure"
            if known > 1:
                rest = f"the other {known:,} are known failures"
            yield f"{count:,} of {count + known:,} queries {counts}; {rest}, which no rule looks at"
        each = [rule.attribute for rule in self.policy.rules if rule.value is None]
        for attribute in dict.fromkeys(name for name in each if name is not None):
            parts = self.slices[attribute]
            named = self.uncounted.named(attribute, [str(part.value) for part in parts])
            ids = np.array(self.now.evidence.query_ids)
            counting = {str(p.value) for p in parts if (p.chosen & self.now.topics).any()}
            others = {str(part.value): list(ids[part.chosen]) for part in parts} | dict(named)
            for value, query_ids in others.items():
                if value not in counting:
                    why = self.uncounted.why(query_ids)
                    yield f"{attribute} {value} is held to no rule: no query of it counts ({why})"

    def _own(self, measure: Measure, part: Slice) -> Own:
        """What a floor is held against in a slice: no value of the baseline changes it."""
        values = self.now.values[measure]
        used = part.chosen & ~np.isnan(values)
        if not used.any():
            return Own(0, None, attribute=part.attribute, slice=part.value)
        weights, strata = self.weighing.at(used)
        span = shown(t_interval(values[used], weights, strata), values[used], *value_range(measure))
        old = None if self.before is None else self.before.values[measure]
        same = old is not None and (part.chosen & ~np.isnan(old) == used).all()
        return Own(
            n=int(used.sum()),
            value=mean(values[used], weights),
            ci_low=span.low,
            ci_high=span.high,
            alike=_alike(weights),
            even=float(np.ptp(values[used])) <= TIED,
            baseline_value=mean(old[used], weights) if old is not None and same else None,
            attribute=part.attribute,
            slice=part.value,
        )

    def _numbers(self, before: Scores, measure: Measure, part: Slice) -> Numbers:
        """What a drop is held against in a slice."""
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
            alike=_alike(weights),
            even=bool(len(differences)) and float(np.ptp(differences)) <= TIED,
            attribute=part.attribute,
            slice=part.value,
        )

    def known_failures(self) -> Iterator[KnownFailure]:
        """What became of the queries that are known to fail."""
        place = {query: index for index, query in enumerate(self.now.evidence.query_ids)}
        for known in self.policy.known_failures:
            if known.query_id not in place:
                raise InputError(
                    f"the known failure {known.query_id} is no query of the judgments",
                    file=self.policy.source,
                    fix="take it off the list",
                )
            value = float(self.now.values[known.measure][place[known.query_id]])
            found = None if np.isnan(value) else value
            lower = known.measure.entry.direction == "lower"
            passes = found is not None and (found <= known.least if lower else found >= known.least)
            yield KnownFailure(known.query_id, str(known.measure), found, passes, known.reason)


def _alike(weights: Floats | None) -> float | None:
    """How many queries of the same weight tell as much (Kish 1965); None where all weigh alike."""
    return None if weights is None else float(weights.sum() ** 2 / (weights**2).sum())
