"""Whether a machine judge puts systems into the order that people do, and by the same distance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from karat.stats.averages import Floats
from karat.stats.intervals import resample, t_interval
from karat.stats.leaderboard import order_agreement
from karat.tables.golden.machine_judges import Test

_RESAMPLES, _SEED = 1000, 0
_SYSTEMS = 3  # fewer have no order worth a correlation


@dataclass(frozen=True)
class Compared:
    """Values of runs, by people's grades and by a judge's, over the same queries."""

    runs: Sequence[str]
    measure: str
    people: Floats  # shape (queries, runs), no NaN
    machine: Floats  # likewise


def order_tests(compared: Compared) -> list[Test]:
    """Agreement of the two orders of systems, and the bias of each difference to the first run.

    The query is the unit: intervals of correlations are percentiles of 1,000 resamples of queries,
    those of biases are Student's.
    """
    queries, systems = compared.people.shape
    if not queries:
        return []
    found = []
    if systems >= _SYSTEMS:
        drawn = resample(queries, _RESAMPLES, np.random.default_rng(_SEED))
        found += [
            _correlation("order tau", compared, drawn, range(systems), _tau, "Kendall's τ of"),
            _correlation("order AP", compared, drawn, range(systems), _ap, "τ of AP of"),
        ]
        top = math.ceil(systems / 2)
        if systems > top >= 2:
            best = np.argsort(-compared.people.mean(axis=0), kind="stable")[:top]
            what = f"Kendall's τ of the best {top} of"
            found.append(
                _correlation("order of the top", compared, drawn, best.tolist(), _tau, what)
            )
    return found + [_bias(compared, run) for run in range(1, systems)]


def _correlation(
    name: str,
    compared: Compared,
    drawn: Floats,
    which: Sequence[int],
    of: Callable[[Floats, Floats], float | None],
    what: str,
) -> Test:
    people, machine = (values[:, list(which)] for values in (compared.people, compared.machine))
    resampled = zip(drawn @ people, drawn @ machine, strict=True)
    values = [each for each in (of(x, y) for x, y in resampled) if each is not None]
    low, high = (
        np.quantile(values, [0.025, 0.975]).tolist() if len(people) > 1 and values else (None, None)
    )
    value = of(people.mean(axis=0), machine.mean(axis=0))
    detail = f"{what} {len(compared.runs)} runs by {compared.measure}, people's and the judge's"
    return Test(name, value, low, high, None, detail)


def _tau(people: Floats, machine: Floats) -> float | None:
    return order_agreement(people, machine).kendall


def _ap(people: Floats, machine: Floats) -> float | None:
    return order_agreement(people, machine).tau_ap


def _bias(compared: Compared, run: int) -> Test:
    people, machine = (
        values[:, run] - values[:, 0] for values in (compared.people, compared.machine)
    )
    span = t_interval(machine - people)
    detail = (
        f"{compared.measure}: a difference of {people.mean():+.3f} by people, "
        f"{machine.mean():+.3f} by the judge"
    )
    name = f"bias {compared.runs[run]} - {compared.runs[0]}"
    return Test(name, float((machine - people).mean()), span.low, span.high, None, detail)
