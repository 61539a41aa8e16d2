"""Effects: each metric in both arms, their difference, and what it means for the metric's role.

Decisions and guardrails have two intervals: the one of the planned end, valid on that day only, and
a confidence sequence, valid on every day. Until the end the sequence decides.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from karat.experiments.evidence import FIRST_CUT, Evidence
from karat.experiments.moments import moments_of
from karat.online.distributions import Statistic, Times
from karat.online.estimates import NOT_SAID, counts_name
from karat.online.evidence import Cut
from karat.online.metrics.entry import Distribution, Metric
from karat.online.metrics.expressions import why_unknown
from karat.online.rules import Rules
from karat.stats import sequences
from karat.stats.arms import (
    Arm,
    ArmMoments,
    Contrast,
    above,
    arm,
    contrast,
    cuped,
    normal_contrast,
    quantile,
    together,
)
from karat.stats.bucket_resampling import Draws
from karat.stats.multiplicity import benjamini_hochberg, holm
from karat.stats.verdicts import shrunken
from karat.tables.days import day_text
from karat.tables.experiments.experiment import (
    DayEffect,
    Effect,
    ExperimentPlan,
    Guard,
    Held,
    QueryEffect,
    Role,
)
from karat.tables.online.events import EventLog

FEW = 2  # users per arm below which there is no interval
FEW_OF_TIMES = 30  # users per arm below which there is no quantile: draws of so few are too alike
NEVER = 0.002  # margin of a share that was 0 in both arms, where 5 % of the control would be 0


@dataclass(frozen=True)
class _Estimates:
    """Both arms of a metric in a slice."""

    control: Arm
    treatment: Arm
    theta: float = 0.0
    kept: float | None = None  # share of the variance that the adjustment leaves
    by_users: bool = True  # Welch's degrees of freedom; else the number of buckets

    def contrast(self, alpha: float) -> Contrast:
        if self.by_users:
            return contrast(self.control, self.treatment, alpha)
        return normal_contrast(
            self.control.value,
            self.treatment.value,
            (self.control.variance, self.treatment.variance),
            alpha=alpha,
        )


class Effects:
    """The effects of an experiment.

    Args:
        evidence: Of ``needed(metrics)`` and the cuts asked for.
        plan: Arms, roles, margins and alpha.
        log: Summary of the event log, which determines the metrics it has no data for.
        rules: Of the evidence.
        ended: Whether the planned end is reached.
        seed: Of the draws of buckets, for quantiles.
    """

    def __init__(
        self,
        evidence: Evidence,
        plan: ExperimentPlan,
        log: EventLog,
        rules: Rules,
        *,
        ended: bool,
        seed: int = 0,
    ) -> None:
        self._evidence, self._plan, self._log, self._rules = evidence, plan, log, rules
        self._ended, self._draws = ended, Draws(seed)

    def of_all(self, roles: Mapping[Role, Sequence[Metric]]) -> list[Effect]:
        """The effect of each metric, with p-values corrected within its role."""
        found: list[Effect] = []
        guards = {guard.metric: guard for guard in self._plan.guards}
        for role, metrics in roles.items():
            arms = [self._estimates(metric, (), ()) for metric in metrics]
            effects = [
                self._effect(metric, role, both) for metric, both in zip(metrics, arms, strict=True)
            ]
            if role == "guardrail":
                effects = [
                    self._guarded(effect, both, guards[effect.metric], len(metrics), metric)
                    for effect, both, metric in zip(effects, arms, metrics, strict=True)
                ]
            else:
                corrected = (holm if role == "decision" else benjamini_hochberg)(
                    [effect.p for effect in effects]
                )
                effects = [
                    replace(effect, p_corrected=p)
                    for effect, p in zip(effects, corrected, strict=True)
                ]
            if role == "decision":
                effects = [self._decided(effect) for effect in effects]
            found += effects
        return found

    def queries(self, metrics: Sequence[Metric], most: int = 10) -> list[QueryEffect]:
        """The queries that add most to the difference, of each metric."""
        found = []
        plan = self._plan
        for metric in metrics:
            of = self._evidence.queries.filter(metric=metric.name)
            total = {
                name: of.filter(arm=name).select(pl.col("above", "below").sum()).row(0)
                for name in (plan.control, plan.treatment)
            }
            if not all(below for _, below in total.values()):
                continue
            centre = total[plan.control][0] / total[plan.control][1]
            signs = {
                plan.treatment: 1 / total[plan.treatment][1],
                plan.control: -1 / total[plan.control][1],
            }
            share = pl.col("arm").replace_strict(signs, return_dtype=pl.Float64)
            adds = ((pl.col("above") - centre * pl.col("below")) * share).sum()
            treated = pl.col("arm") == plan.treatment
            rows = (
                of.group_by("query")
                .agg(
                    adds=adds,
                    above_c=pl.col("above").filter(~treated).sum(),
                    n_c=pl.col("below").filter(~treated).sum(),
                    above_t=pl.col("above").filter(treated).sum(),
                    n_t=pl.col("below").filter(treated).sum(),
                )
                .sort(pl.col("adds").abs(), "query", descending=[True, False])
                .head(most)
            )
            found += [
                QueryEffect(
                    metric.name,
                    row["query"],
                    row["adds"],
                    row["above_c"] / row["n_c"] if row["n_c"] else None,
                    row["above_t"] / row["n_t"] if row["n_t"] else None,
                    row["n_c"],
                    row["n_t"],
                )
                for row in rows.iter_rows(named=True)
            ]
        return found

    def over_time(self, metrics: Sequence[Metric], cut: Cut) -> list[DayEffect]:
        """The effect of the users exposed up to each day, with the interval and the sequence.

        Args:
            metrics: Ratios; others have no row.
            cut: The day of first exposure.
        """
        rows = []
        days = sorted({int(part[0]) for part in self._parts(cut) if part[0] is not None})
        for metric in metrics:
            so_far: dict[str, ArmMoments] = {}
            for day in days:
                for name in (self._plan.control, self._plan.treatment):
                    new = self._moments.get((cut, (str(day),), name, metric.name))
                    if new is not None:
                        so_far[name] = together(so_far[name], new) if name in so_far else new
                if len(so_far) == 2:
                    rows.append(self._up_to(metric, day, so_far))
        return [row for row in rows if row is not None]

    def _up_to(self, metric: Metric, day: int, arms: Mapping[str, ArmMoments]) -> DayEffect | None:
        control, treatment = (arms[name] for name in (self._plan.control, self._plan.treatment))
        if min(control.users, treatment.users) < FEW:
            return None
        theta, before = cuped(control, treatment)
        both = contrast(
            arm(control, theta, before), arm(treatment, theta, before), self._plan.alpha
        )
        users = control.users, treatment.users
        low, high = self._sequence(both, users)
        difference = both.difference
        return DayEffect(
            metric.name, day_text(day), difference, both.low, both.high, sum(users), low, high
        )

    def _sequence(
        self, both: Contrast, users: tuple[int, int]
    ) -> tuple[float | None, float | None]:
        """The ends of the confidence sequence of a difference; None with too few users."""
        if min(users) < sequences.LEAST or not both.error:
            return None, None
        n = sum(users)
        reach = sequences.reach(both.error, n, self._planned(n), self._plan.alpha)
        return both.difference - reach, both.difference + reach

    def _planned(self, n: int) -> int:
        """Where sequences are narrowest: the planned number of users, else that of now."""
        every = sum(self._evidence.counts["users"])
        return self._plan.users or max(n, every)

    def slices(self, cut: Cut, metrics: Sequence[Metric], wholes: Sequence[Effect]) -> list[Effect]:
        """Effects in slices, shrunk towards that of all, with p-values corrected over slices."""
        found: list[Effect] = []
        for metric in metrics:
            whole = next(effect for effect in wholes if effect.metric == metric.name)
            rows = [
                self._effect(metric, "diagnostic", self._estimates(metric, cut, part), cut, part)
                for part in self._parts(cut)
            ]
            rows = [
                replace(row, role=whole.role) for row in rows if row.n_control or row.n_treatment
            ]
            corrected = benjamini_hochberg([row.p for row in rows])
            rows = [replace(r, p_corrected=p) for r, p in zip(rows, corrected, strict=True)]
            found += self._shrunk(rows, whole)
        return found

    def _shrunk(self, rows: Sequence[Effect], whole: Effect) -> list[Effect]:
        known = [row for row in rows if row.ci_low is not None and row.ci_high is not None]
        if whole.difference is None or not known:
            return list(rows)
        width = 2 * quantile(1 - self._plan.alpha / 2, math.inf)
        errors = np.array([(row.ci_high - row.ci_low) / width for row in known], np.float64)  # type: ignore[operator]
        differences = np.array([row.difference for row in known], np.float64)
        values = shrunken(differences, errors, whole.difference).tolist()
        by_slice = {tuple(row.slice.items()): v for row, v in zip(known, values, strict=True)}
        return [replace(row, shrunk=by_slice.get(tuple(row.slice.items()))) for row in rows]

    def _parts(self, cut: Cut) -> list[tuple[str | None, ...]]:
        frames = (self._evidence.moments[cut], self._evidence.histograms[cut])
        parts = {row for frame in frames for row in frame.select(cut).unique().iter_rows()}
        return sorted(parts, key=lambda part: [(value is None, value or "") for value in part])

    def _effect(
        self,
        metric: Metric,
        role: Role,
        found: _Estimates | str,
        cut: Cut = (),
        part: tuple[str | None, ...] = (),
    ) -> Effect:
        names = {n: NOT_SAID if v is None else v for n, v in zip(cut, part, strict=True)}
        blank = Effect(metric.name, role, metric.unit, metric.direction, names)
        if isinstance(found, str):
            return replace(blank, reason=found)
        both = found.contrast(self._plan.alpha)
        effect = replace(
            blank,
            control=found.control.value,
            treatment=found.treatment.value,
            difference=both.difference,
            relative=both.relative,
            n_control=found.control.users,
            n_treatment=found.treatment.users,
            theta=found.theta,
            variance_kept=found.kept,
        )
        if min(found.control.users, found.treatment.users) < FEW:
            return replace(effect, reason="one user in an arm")
        if not both.error:
            return replace(effect, reason="all users of an arm are alike")
        low, high = both.relative_low, both.relative_high
        effect = replace(
            effect,
            ci_low=both.low,
            ci_high=both.high,
            relative_low=low,
            relative_high=high,
            p=both.p,
            reason="" if low is not None else "the control may be 0: the lift is unbounded",
        )
        if not cut:
            effect = self._diluted(effect, both)
        if role == "diagnostic":
            return effect
        low, high = self._sequence(both, (effect.n_control, effect.n_treatment))
        return replace(effect, cs_low=low, cs_high=high)

    def _diluted(self, effect: Effect, both: Contrast) -> Effect:
        """The effect on all traffic: users without a trigger are not changed by the treatment.

        Source: Deng & Hu 2015, WSDM, Diluted treatment effect estimation for trigger analysis.
        """
        whole = self._exposed.get(effect.metric)
        if not whole:
            return effect
        triggered = self._moments[(), (), self._plan.control, effect.metric]
        share = triggered.users * float(triggered.means[1]) / whole
        return replace(
            effect,
            diluted=both.difference * share,
            diluted_low=None if both.low is None else both.low * share,
            diluted_high=None if both.high is None else both.high * share,
        )

    @cached_property
    def _exposed(self) -> dict[str, float]:
        """Denominators of metrics over all exposed users of the control; with a trigger only."""
        of = self._evidence.whole.filter(arm=self._plan.control)
        return dict(of.select("metric", "sum_below").iter_rows())

    def _decided(self, effect: Effect) -> Effect:
        """Better or worse: at the end by the corrected p-value, before it by the sequence."""
        if effect.difference is None or effect.p_corrected is None:
            return replace(effect, held="cannot_tell")
        if self._ended:
            found = effect.p_corrected <= self._plan.alpha
        else:
            found = effect.cs_low is not None and not effect.cs_low <= 0 <= (effect.cs_high or 0)
        if not found or effect.direction == "none":
            return replace(effect, held="cannot_tell")
        up = (effect.difference > 0) == (effect.direction == "higher")
        return replace(effect, held="better" if up else "worse")

    def _guarded(
        self, effect: Effect, found: _Estimates | str, guard: Guard, guards: int, metric: Metric
    ) -> Effect:
        """Passed, if harm of the margin is refuted; breached, if less harm is refuted."""
        if isinstance(found, str) or effect.difference is None:
            return replace(
                effect, held="cannot_tell", margin=None if guard.relative else guard.margin
            )
        sign = -1.0 if metric.direction == "lower" else 1.0
        control, treatment = found.control, found.treatment
        margin = guard.margin * abs(control.value) if guard.relative else guard.margin
        # With a margin that is a share of the control, its estimate is uncertain too.
        slope = guard.margin * math.copysign(1, control.value) if guard.relative else 0.0
        room = sign * (treatment.value - control.value) + margin
        variance = treatment.variance + (sign - slope) ** 2 * control.variance
        error, df = math.sqrt(max(variance, 0.0)), found.contrast(self._plan.alpha).df
        held: Held = "cannot_tell"
        if min(control.users, treatment.users) < FEW:
            pass
        elif not error:
            held = self._alike(room, metric, min(control.users, treatment.users))
        elif self._ended:
            held = (
                "passed"
                if above(room / error, df) <= self._plan.alpha
                else "breached"
                if above(-room / error, df) <= self._plan.alpha / guards
                else held
            )
        elif min(control.users, treatment.users) >= sequences.LEAST:
            n = control.users + treatment.users
            planned = self._planned(n)
            alpha = self._plan.alpha
            if room > sequences.reach_one_sided(error, n, planned, alpha):
                held = "passed"
            elif room < -sequences.reach_one_sided(error, n, planned, alpha / guards):
                held = "breached"
        reason = effect.reason
        if not error and held == "cannot_tell" and room >= 0 and metric.unit == "share":
            least = max(sequences.LEAST, math.ceil(-math.log(self._plan.alpha) / (room or NEVER)))
            reason = f"all users are alike: it takes {least:,} in each arm"
        return replace(effect, held=held, margin=margin, reason=reason)

    def _alike(self, room: float, metric: Metric, users: int) -> Held:
        """Without any spread: what no user did may still be done by 3 of as many.

        Source: Hanley & Lippman-Hand 1983, JAMA 249(13), the rule of three.
        """
        if users < sequences.LEAST:
            return "cannot_tell"
        if room < 0:
            return "breached"
        unseen = -math.log(self._plan.alpha) / users if metric.unit == "share" else 0.0
        return "passed" if (room or NEVER) > unseen else "cannot_tell"

    def _estimates(
        self, metric: Metric, cut: Cut, part: tuple[str | None, ...]
    ) -> _Estimates | str:
        """Both arms; else the reason why there is no difference."""
        if why := why_unknown(metric, self._log):
            return why
        if isinstance(metric.compute, Distribution):
            return self._distributions(metric, metric.compute, cut, part)
        if not metric.point:
            return "only bounds of it are known"
        if self._plan.steps and not cut:
            return self._stratified(metric)
        control, treatment = (
            self._moments.get((cut, part, name, metric.name))
            for name in (self._plan.control, self._plan.treatment)
        )
        if control is None or treatment is None:
            return "an arm has nothing to count"
        theta, before = (0.0, 0.0) if cut else cuped(control, treatment)
        adjusted = arm(control, theta, before), arm(treatment, theta, before)
        kept = None
        if theta:
            plain = arm(control).variance + arm(treatment).variance
            kept = (adjusted[0].variance + adjusted[1].variance) / plain if plain else None
        return _Estimates(*adjusted, theta=theta, kept=kept)

    def _stratified(self, metric: Metric) -> _Estimates | str:
        """Both arms within each step of a ramp, weighted by the users of the step.

        Shares that change with time, as users do, would otherwise look like an effect (Simpson).
        """
        steps: dict[int, dict[str, ArmMoments]] = {}
        for (cut, part, name, of), moments in self._moments.items():
            if cut == FIRST_CUT and of == metric.name and part[0] is not None:
                arms = steps.setdefault(bisect(self._plan.steps, int(part[0])), {})
                arms[name] = together(arms[name], moments) if name in arms else moments
        names = (self._plan.control, self._plan.treatment)
        whole = [arms for arms in steps.values() if all(name in arms for name in names)]
        whole = [arms for arms in whole if min(arms[name].users for name in names) >= FEW]
        users = sum(arms[name].users for arms in whole for name in names)
        if not users:
            return "an arm has nothing to count"
        sides: list[list[Arm]] = [[], []]
        weights = []
        for arms in whole:
            theta, before = cuped(arms[names[0]], arms[names[1]])
            weights.append(sum(arms[name].users for name in names) / users)
            for side, name in zip(sides, names, strict=True):
                side.append(arm(arms[name], theta, before))
        control, treatment = (
            Arm(
                sum(w * one.value for w, one in zip(weights, side, strict=True)),
                sum(w * w * one.variance for w, one in zip(weights, side, strict=True)),
                sum(one.users for one in side),
            )
            for side in sides
        )
        return _Estimates(control, treatment)

    @cached_property
    def _moments(self) -> dict[tuple[Cut, tuple[str | None, ...], str, str], ArmMoments]:
        return {
            (cut, tuple(row[name] for name in cut), row["arm"], row["metric"]): moments_of(row)
            for cut, frame in self._evidence.moments.items()
            for row in frame.iter_rows(named=True)
        }

    def _distributions(
        self, metric: Metric, compute: Distribution, cut: Cut, part: tuple[str | None, ...]
    ) -> _Estimates | str:
        frame = self._evidence.histograms[cut].filter(pl.col("name") == compute.name)
        for name, value in zip(cut, part, strict=True):
            frame = frame.filter(pl.col(name).eq_missing(value))
        statistic = Statistic.of(compute, self._rules)
        unit = 1e3 if metric.unit == "milliseconds" else 1e6
        values: list[float] = []
        drawn = []
        users: list[int] = []
        for name in (self._plan.control, self._plan.treatment):
            of_arm = frame.filter(pl.col("arm") == name)
            if of_arm.is_empty():
                return "an arm has nothing to count"
            centre, draws = Times(of_arm).drawn(statistic, self._draws)
            values.append(centre / unit)
            drawn.append(draws / unit)
            counted = self._moments.get((cut, part, name, counts_name(compute)))
            users.append(counted.users if counted else 0)
        if min(users) < FEW_OF_TIMES:
            return f"fewer than {FEW_OF_TIMES} users in an arm"
        if not all(map(math.isfinite, values)):
            return "too many are censored: it is not reached"
        usable = np.isfinite(drawn[0]) & np.isfinite(drawn[1])
        if usable.mean() < 1 - self._plan.alpha / 2:
            return "too many draws of the users do not reach it"
        # Users of the same bucket are in different arms, so that the arms are independent.
        control, treatment = (
            Arm(value, float(np.var(draws[usable], ddof=1)), n)
            for value, draws, n in zip(values, drawn, users, strict=True)
        )
        return _Estimates(control, treatment, by_users=False)
