"""Gate: may this candidate ship, by what the team wrote down."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from karat import formats
from karat.diagnosis.movement import moves
from karat.diagnosis.slices import Slice, slices_of
from karat.errors import InputError, UsageError, nearest
from karat.formats.policy import read_policy
from karat.measures import Measure, parse
from karat.measures.evidence import Mask
from karat.measures.pair import Pair
from karat.measures.scores import Scores
from karat.release.gate import (
    Answers,
    Doubt,
    Numbers,
    blind,
    health_checks,
    overall,
    rule_checks,
    unless_worse,
)
from karat.release.policy import Policy, Rule, policy_of
from karat.stats import mean
from karat.stats.aggregation import Aggregation
from karat.stats.effects import TIED
from karat.stats.multiplicity import holm
from karat.stats.quantiles import latency_of
from karat.stats.verdicts import LEVEL, Contrast, Testing
from karat.stats.weighing import Weighing
from karat.tables import Documents, Run
from karat.tables.baseline import SavedBaseline
from karat.tables.comparison import Move
from karat.tables.gate import WORST_FIRST, Check, Gate, KnownFailure, Lost
from karat.tables.results import Result
from karat.workflows import given
from karat.workflows.baseline import changed, renewal, restored, save_baseline, saved_in
from karat.workflows.fingerprints import fingerprint
from karat.workflows.notes import of_run
from karat.workflows.settle import Settled, check_types, settle
from karat.workflows.uncounted import Uncounted

__all__ = ["gate", "save_baseline"]

LOST = 10
"""Queries that are listed for a check that did not pass."""


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

    Raises:
        InputError: the policy is none, or runs and judgments do not belong together.
        UsageError: a rule needs a baseline and there is none, or a slice that there is not.
    """
    wanted = policy_from(policy, rel)
    saved = saved_in(baseline)
    if baseline is None and wanted.needs_baseline:
        raise UsageError("the policy is about drops, and there is no baseline", fix="name one")
    held = given.documents_for(wanted.attributes, documents, qrels)
    runs = _runs(candidate, baseline if saved is None else None)
    asked = settle(
        qrels,
        runs,
        [str(measure) for measure in wanted.measures],
        queries=queries,
        documents=documents if held is None else held,
        rel=rel,
        complete=complete,
        depth=depth,
        collapse=collapse,
        scale=scale,
    )
    scored = asked.scored()
    now = scored[0]
    before = restored(saved, now, asked) if saved else scored[1] if scored[1:] else None
    hashes = {
        "qrels": fingerprint(asked.qrels),
        "queries": fingerprint(asked.about),
        "policy": hashlib.sha256(repr(wanted.content).encode()).hexdigest(),
        "candidate": fingerprint(now.run),
        "baseline": saved.hashes["run"] if saved else fingerprint(before.run if before else None),
    }
    judged = _Judged(wanted, asked, now, before, held)
    answers = judged.answers(saved)
    doubt = _dead(answers[1])
    renewed = ""
    if saved is not None and (what := changed(saved, hashes, asked.rules, collapse)):
        doubt = Doubt("stale", what)
        typed = {"qrels": qrels, "queries": queries, "documents": documents}
        typed |= {"collapse": collapse, "scale": scale}
        renewed = f"; to save it anew: {renewal(saved, wanted, asked, typed)} (RUN was {saved.run})"
    held_against = [each for rule in wanted.rules for each in judged.checks(rule, doubt)]
    checks = [
        *health_checks(wanted.health, *answers),
        *(check for check, _ in held_against),
    ]
    checks.sort(key=lambda check: WORST_FIRST.index(check.verdict))
    stale = next((at for at, check in enumerate(checks) if check.verdict == "stale"), None)
    if stale is not None:  # said once, and not with every rule
        checks[stale] = replace(checks[stale], reason=checks[stale].reason + renewed)
    return Gate(
        verdict=overall(checks),
        baseline=None if before is None else before.run.name,
        candidate=now.run.name,
        policy=wanted.source,
        checks=checks,
        lost=list(judged.lost(held_against, documents=saved is None)),
        known_failures=list(judged.known_failures()),
        hashes=hashes,
        notes=[
            *(f"{s.run.name}: {note}" for s in scored for note in of_run(s, asked.rules)),
            *([doubt.reason + renewed] if renewed and doubt and stale is None else []),
            *judged.left_out(),
            *blind(checks),
        ],
        results=list(judged.own(held_against)),
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


def _dead(baseline: Answers | None) -> Doubt | None:
    """What speaks against a baseline that returned nothing: every rise from there is one."""
    if baseline is None or baseline.documents:
        return None
    return Doubt("cannot_tell", f"the baseline {baseline.run} returned nothing")


@dataclass(frozen=True)
class _Judged:
    """A candidate, and what it is held against."""

    policy: Policy
    asked: Settled
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
                before = replace(before, p95_us=saved.p95_us, documents=1, errors={}, nothing="")
        return self._answers(self.now), before

    def _answers(self, scores: Scores) -> Answers:
        counting, latency = scores.topics & ~self.known, latency_of(scores.run)
        ids = scores.evidence.query_ids
        depths = {measure.depth for measure in self.policy.measures if measure.depth is not None}
        judged: dict[int, float | None] = {}
        for k in sorted(depths):
            share = parse(f"Judged@{k}")(scores.evidence)
            used = counting & ~np.isnan(share)
            judged[k] = mean(share[used]) if used.any() else None
        run, failed = scores.run, counting & (scores.answered == "failed")
        of_file = run.source == "standard input" or Path(run.source).is_file()
        return Answers(
            run=run.name,
            queries=int(counting.sum()),
            failed=int(failed.sum()),
            missing=int((counting & (scores.answered == "missing")).sum()),
            documents=int(scores.evidence.returned[counting].sum()),
            judged=judged,
            p95_us=None if latency is None else latency.p95_us,
            errors=_errors(run, {query for query, no in zip(ids, failed, strict=True) if no}),
            nothing="" if run.answers.height else f"the run{' file' * of_file} is empty",
        )

    def checks(self, rule: Rule, doubt: Doubt | None) -> Iterator[tuple[Check, Mask]]:
        """A rule, over all queries or slice by slice, and which queries it is over."""
        for part in self._parts(rule):
            found = rule_checks(rule, self.numbers(rule.measure, part), doubt)
            failed = part.chosen & self.now.topics & (self.now.answered == "failed")
            if failed.any():
                # Timing out on what is hard must not help: it must hold at the worst value too.
                entry = rule.measure.entry
                worst_value = 0.0 if entry.direction != "lower" else entry.high or 1e9
                values = self.now.values | {
                    rule.measure: np.where(failed, worst_value, self.now.values[rule.measure])
                }
                worst = replace(self, now=replace(self.now, values=values))
                at_worst = rule_checks(rule, worst.numbers(rule.measure, part), doubt)
                pairs = zip(found, at_worst, strict=True)
                found = (unless_worse(check, other, int(failed.sum())) for check, other in pairs)
            for check in found:
                yield check, part.chosen

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
        parts = {(c.measure, c.attribute, c.slice): chosen for c, chosen in held_against}
        parts |= {(name, None, None): counting for name in measures}
        for (name, attribute, value), chosen in parts.items():
            if name in measures:
                yield row(measures[name], chosen & counting, attribute, value)

    def _parts(self, rule: Rule) -> list[Slice]:
        if rule.attribute is None:
            return [Slice(None, None, ~self.known)]
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
        """The slices that a rule for each of them says nothing about."""
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

    def numbers(self, measure: Measure, part: Slice) -> Numbers:
        """What a rule about a measure is held against in a slice."""
        weighing, values = self.weighing, self.now.values[measure]
        if self.before is None:
            used = part.chosen & ~np.isnan(values)
            weights, _ = weighing.at(used)
            value = mean(values[used], weights) if used.any() else None
            return Numbers(int(used.sum()), value, attribute=part.attribute, slice=part.value)
        testing = Testing("t", None, None, 100, 0, weighing)
        contrast = Contrast(self.before, self.now, measure)
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
            alike=None if weights is None else float(weights.sum() ** 2 / (weights**2).sum()),
            even=bool(len(differences)) and float(np.ptp(differences)) <= TIED,
            attribute=part.attribute,
            slice=part.value,
        )

    def lost(self, checks: Sequence[tuple[Check, Mask]], *, documents: bool) -> Iterator[Lost]:
        """The queries that lost most where a check did not pass, measure by measure.

        Args:
            checks: The checks, and which queries each is over.
            documents: Whether the documents of the baseline are known.
        """
        before = self.before
        if before is None:
            return
        texts = self.asked.about.texts() if self.asked.about else {}
        ids = self.now.evidence.query_ids
        for measure in self.policy.measures:
            contrast = Contrast(before, self.now, measure)
            gain = contrast.sign * contrast.difference
            found: dict[int, Check] = {}
            broken = [
                (check, chosen)
                for check, chosen in checks
                if check.measure == str(measure) and check.verdict in ("fail", "cannot_tell")
            ]
            # A query is told with the slice that it is lost in, if there is one.
            for check, chosen in sorted(broken, key=lambda each: each[0].attribute is None):
                within = np.where(chosen, gain, np.nan)
                order = np.argsort(within, kind="stable")[:LOST]
                for index in order[within[order] < -TIED].tolist():
                    found.setdefault(index, check)
            ordered = sorted(found, key=lambda index: (gain[index], index))
            moved: dict[str, list[Move]] = {}
            if documents and ordered:
                for move in moves(measure, self._pair(before), ordered):
                    moved.setdefault(move.query_id, []).append(move)
            for index in ordered:
                old, new = (float(values[index]) for values in contrast.both)
                yield Lost(
                    measure=str(measure),
                    query_id=ids[index],
                    text=texts.get(ids[index]),
                    baseline_value=old,
                    candidate_value=new,
                    attribute=found[index].attribute,
                    slice=found[index].slice,
                    moves=moved.get(ids[index], []) if documents else None,
                )

    def _pair(self, before: Scores) -> Pair:
        depth, now = self.asked.rules.depth, self.now
        return Pair(before.run, now.run, self.asked.qrels, before.evidence, now.evidence, depth)

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
            yield KnownFailure(known.query_id, str(known.measure), found, passes)


def _errors(run: Run, failed: set[str]) -> dict[str, int]:
    """Why queries failed, and how many did; empty if nobody knows."""
    if "error" not in run.answers.columns or not failed:
        return {}
    told = dict(run.answers.select("query_id", "error").iter_rows())
    return dict(
        Counter(told[query] for query in run.answers["query_id"] if query in failed and told[query])
    )
