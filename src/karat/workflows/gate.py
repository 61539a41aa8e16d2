"""Gate: may this candidate ship, by what the team wrote down."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from karat.diagnosis.slices import Slice, slices_of
from karat.errors import InputError, UsageError, nearest
from karat.formats.baseline import holds_baseline, read_baseline, write_baseline
from karat.formats.policy import read_policy
from karat.measures import Measure, parse
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.release.gate import Answers, Numbers, health_checks, overall, rule_checks
from karat.release.policy import Policy, Rule, policy_of
from karat.stats import mean
from karat.stats.multiplicity import holm
from karat.stats.quantiles import latency_of
from karat.stats.verdicts import LEVEL, Contrast, Testing
from karat.stats.weighing import Weighing
from karat.tables import Documents
from karat.tables.baseline import SavedBaseline
from karat.tables.gate import WORST_FIRST, Check, Gate, KnownFailure, Lost
from karat.workflows import given
from karat.workflows.fingerprints import fingerprint
from karat.workflows.notes import of_run
from karat.workflows.settle import Settled, settle

LOST = 10
"""Queries that are listed for a measure that did not pass."""


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
    wanted = _policy(policy, rel)
    saved = _saved(baseline)
    if baseline is None and wanted.needs_baseline:
        raise UsageError("the policy is about drops, and there is no baseline", fix="name one")
    held = given.documents_for(wanted.attributes, documents, qrels)
    runs = [candidate] if baseline is None or saved is not None else [candidate, baseline]
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
    before = _restored(saved, now, asked) if saved else scored[1] if scored[1:] else None
    hashes = {
        "qrels": fingerprint(asked.qrels),
        "queries": fingerprint(asked.about),
        "policy": hashlib.sha256(repr(wanted.content).encode()).hexdigest(),
        "candidate": fingerprint(now.run),
        "baseline": saved.hashes["run"] if saved else fingerprint(before.run if before else None),
    }
    judged = _Judged(wanted, asked, now, before, held)
    stale = judged.stale(saved, hashes)
    held_against = [each for rule in wanted.rules for each in judged.checks(rule, stale)]
    checks = [
        *health_checks(wanted.health, *judged.answers(saved)),
        *(check for check, _ in held_against),
    ]
    checks.sort(key=lambda check: WORST_FIRST.index(check.verdict))
    return Gate(
        verdict=overall(checks),
        baseline=None if before is None else before.run.name,
        candidate=now.run.name,
        policy=wanted.source,
        checks=checks,
        lost=list(judged.lost(held_against)),
        known_failures=list(judged.known_failures()),
        hashes=hashes,
        notes=[
            *(f"{s.run.name}: {note}" for s in scored for note in of_run(s, asked.rules)),
            *([stale] if stale else []),
            *_blind(checks),
        ],
    )


def save_baseline(
    path: str | Path,
    qrels: Any,
    run: Any,
    measures: str | Iterable[str] | None = None,
    *,
    queries: Any = None,
    documents: Any = None,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    collapse: str | None = None,
    scale: Any = None,
) -> SavedBaseline:
    """Save the values of a run, query by query, with the hashes of what they come from.

    Args:
        path: The file; ``.json``, perhaps compressed (``.json.gz``).
        qrels: As ``evaluate`` takes them; the following too.
        run: The run.
        measures: Those that a policy will ask for.
        queries: As in ``gate``.
        documents: As in ``gate``.
        rel: As in ``gate``.
        complete: As in ``gate``.
        depth: As in ``gate``.
        collapse: As in ``gate``.
        scale: As in ``gate``.

    Raises:
        UsageError: an unknown measure, or a file name that does not say JSON.
        InputError: run and judgments do not belong together, or the file cannot be written.
    """
    if ".json" not in Path(path).suffixes:
        raise UsageError(f"a baseline is JSON, and {Path(path).name} does not say so", fix="x.json")
    asked = settle(
        qrels,
        [run],
        measures,
        queries=queries,
        documents=documents,
        rel=rel,
        complete=complete,
        depth=depth,
        collapse=collapse,
        scale=scale,
    )
    [scores] = asked.scored()
    failed = int((scores.topics & (scores.answered == "failed")).sum())
    if failed:
        raise InputError(
            f"{failed} queries of {scores.run.name} got no answer, and a baseline without them "
            "would be held against others",
            file=scores.run.source,
            fix="save a run in which every query was answered",
        )
    table = np.stack([scores.values[measure] for measure in asked.measures], axis=1)
    latency = latency_of(scores.run)
    saved = SavedBaseline(
        karat=metadata.version("karat"),
        run=scores.run.name,
        measures=tuple(map(str, asked.measures)),
        rel=asked.rules.rel,
        complete=complete,
        depth=depth,
        hashes={
            "qrels": fingerprint(asked.qrels),
            "queries": fingerprint(asked.about),
            "run": fingerprint(scores.run),
        },
        answered=dict(zip(scores.evidence.query_ids, scores.answered.tolist(), strict=True)),
        values={
            query: tuple(None if np.isnan(value) else float(value) for value in row)
            for query, row in zip(scores.evidence.query_ids, table, strict=True)
        },
        p95_us=None if latency is None else latency.p95_us,
    )
    write_baseline(saved, path)
    return saved


def _blind(checks: Sequence[Check]) -> Iterator[str]:
    """What passed although these queries could not have seen it fail."""
    unseen = [
        check
        for check in checks
        if check.verdict == "pass"
        and check.limit is not None
        and check.smallest_detected is not None
        and check.smallest_detected > check.limit
        and check.ci_high is not None
        and check.ci_high > check.limit
    ]
    if unseen:
        first = unseen[0]
        where = f" ({first.attribute} {first.slice})" if first.attribute else ""
        more = f", and {len(unseen) - 1} more likewise" if len(unseen) > 1 else ""
        yield (
            f"“{first.rule}”{where} passed by what was observed; its {first.n} queries detect no "
            f"drop below {first.smallest_detected:.3f}, and {first.limit:.3f} is allowed: a true "
            f'drop may hide there (evidence = "interval" asks for proof){more}'
        )


def _unless_worse(check: Check, at_worst: Check, failed: int) -> Check:
    """A check that passes only because queries without an answer do not count cannot tell."""
    if check.verdict != "pass" or at_worst.verdict == "pass":
        return check
    said = f"{check.reason}; with the {failed} unanswered at their worst it would not hold"
    return replace(check, verdict="cannot_tell", reason=said)


def _policy(policy: Any, rel: float | None) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        return policy_of(policy, rel=rel)
    return read_policy(policy, rel)


def _saved(baseline: Any) -> SavedBaseline | None:
    if isinstance(baseline, SavedBaseline):
        return baseline
    if isinstance(baseline, str | Path) and holds_baseline(baseline):
        return read_baseline(baseline)
    return None


def _restored(saved: SavedBaseline, now: Scores, asked: Settled) -> Scores:
    """The scores of a saved baseline, for the queries there are now."""
    lacking = [str(measure) for measure in asked.measures if str(measure) not in saved.measures]
    if lacking:
        raise InputError(
            f"the baseline has no {lacking[0]}; it has {', '.join(saved.measures)}",
            file=saved.source,
            fix=f"save it anew, with -m {lacking[0]}",
        )
    query_ids = now.evidence.query_ids
    nothing: tuple[float | None, ...] = (None,) * len(saved.measures)
    table = np.array([saved.values.get(query, nothing) for query in query_ids], np.float64)
    column = {name: place for place, name in enumerate(saved.measures)}
    return replace(
        now,
        run=now.run.named(saved.run if saved.run != now.run.name else f"{saved.run} (saved)"),
        answered=np.array([saved.answered.get(query, "missing") for query in query_ids]),
        values={m: table[:, column[str(m)]] for m in asked.measures},
    )


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

    def stale(self, saved: SavedBaseline | None, hashes: Mapping[str, str | None]) -> str:
        """Why a saved baseline counts no more; empty if it does, or there is none."""
        if saved is None:
            return ""
        rules = self.asked.rules
        found = {
            "the judgments": saved.hashes["qrels"] != hashes["qrels"],
            "the queries": saved.hashes["queries"] != hashes["queries"],
            "the rules (rel, complete, depth)": (saved.rel, saved.complete, saved.depth)
            != (rules.rel, rules.complete, rules.depth),
        }
        changed = [what for what, differs in found.items() if differs]
        if not changed:
            return ""
        return f"{' and '.join(changed)} changed since {saved.source} was saved: save it anew"

    def answers(self, saved: SavedBaseline | None) -> tuple[Answers, Answers | None]:
        """What became of the queries in both runs."""
        before = None
        if self.before is not None:
            before = self._answers(self.before)
            if saved is not None:
                before = replace(before, p95_us=saved.p95_us, documents=1)
        return self._answers(self.now), before

    def _answers(self, scores: Scores) -> Answers:
        counting, latency = scores.topics & ~self.known, latency_of(scores.run)
        depths = {measure.depth for measure in self.policy.measures if measure.depth is not None}
        judged: dict[int, float | None] = {}
        for k in sorted(depths):
            share = parse(f"Judged@{k}")(scores.evidence)
            used = counting & ~np.isnan(share)
            judged[k] = mean(share[used]) if used.any() else None
        return Answers(
            run=scores.run.name,
            queries=int(counting.sum()),
            failed=int((counting & (scores.answered == "failed")).sum()),
            missing=int((counting & (scores.answered == "missing")).sum()),
            documents=int(scores.evidence.returned[counting].sum()),
            judged=judged,
            p95_us=None if latency is None else latency.p95_us,
        )

    def checks(self, rule: Rule, stale: str) -> Iterator[tuple[Check, Mask]]:
        """A rule, over all queries or slice by slice, and which queries it is over."""
        for part in self._parts(rule):
            found = rule_checks(rule, self.numbers(rule.measure, part), stale)
            failed = part.chosen & self.now.topics & (self.now.answered == "failed")
            if failed.any():
                # Timing out on what is hard must not help: it must hold at the worst value too.
                entry = rule.measure.entry
                worst_value = 0.0 if entry.direction != "lower" else entry.high or 1e9
                values = self.now.values | {
                    rule.measure: np.where(failed, worst_value, self.now.values[rule.measure])
                }
                worst = replace(self, now=replace(self.now, values=values))
                at_worst = rule_checks(rule, worst.numbers(rule.measure, part), stale)
                pairs = zip(found, at_worst, strict=True)
                found = (_unless_worse(check, other, int(failed.sum())) for check, other in pairs)
            for check in found:
                yield check, part.chosen

    def _parts(self, rule: Rule) -> list[Slice]:
        if rule.attribute is None:
            return [Slice(None, None, ~self.known)]
        both = [self.now] if self.before is None else [self.before, self.now]
        found = slices_of(self.asked.about, rule.attribute, both, self.documents, self.asked.qrels)
        parts = [Slice(rule.attribute, value, chosen & ~self.known) for value, chosen in found]
        if rule.value is None:
            return parts
        chosen = [part for part in parts if part.value == rule.value]
        if not chosen:
            values = [str(part.value) for part in parts]
            raise UsageError(
                f"no query has {rule.attribute} {rule.value!r}; there are {', '.join(values)}",
                nearest=nearest(rule.value, values, 1),
            )
        return chosen

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
            attribute=part.attribute,
            slice=part.value,
        )

    def lost(self, checks: Sequence[tuple[Check, Mask]]) -> Iterator[Lost]:
        """The queries that lost most, by each measure and where it did not pass."""
        if self.before is None:
            return
        texts = self.asked.about.texts() if self.asked.about else {}
        for measure in self.policy.measures:
            broken = [
                chosen
                for check, chosen in checks
                if check.measure == str(measure) and check.verdict in ("fail", "cannot_tell")
            ]
            if not broken:
                continue
            contrast = Contrast(self.before, self.now, measure)
            within = np.any(broken, axis=0)
            gain = np.where(within, contrast.sign * contrast.difference, np.nan)
            order = np.argsort(gain, kind="stable")[:LOST]
            for index in order[gain[order] < 0].tolist():
                query_id = self.now.evidence.query_ids[index]
                old, new = (float(values[index]) for values in contrast.both)
                yield Lost(str(measure), query_id, texts.get(query_id), old, new)

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
