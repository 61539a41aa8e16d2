"""Whether the latest window of a metric differs from what earlier weeks predict.

**The expected value** is the mean over earlier comparable windows (same weekdays, same hours): a
Sunday is compared with Sundays.

**Variance.** A window differs from that mean by its own sampling error (users are the units), by
that of the earlier windows, and by differences between weeks. The latter are estimated from the
variance between a few earlier windows, which alone would give a test almost no power. Therefore
that variance, relative to the sampling variance, is shrunk towards its value over all metrics (or
all slices), to the degree that they agree (moderated t). The ratio is never below 1; and as
all series share their weeks, the others have at most twice the weight of the series itself.

**Multiple tests.** Of the changes called worse or better, at most 5 % are expected to be false
(Benjamini and Hochberg). Overall metrics are one family of tests and slices another, so more slices
do not change the verdict on the whole; if nothing changed, 5 % of all watches report a change of
the whole, and 5 % one of a slice.

Sources: Smyth 2004, doi:10.2202/1544-6115.1027, for moderated t; Benjamini & Hochberg 1995.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from karat.errors import UsageError
from karat.online.health import WEEK
from karat.online.metrics.entry import Metric
from karat.online.rules import margin
from karat.stats.averages import Floats
from karat.stats.multiplicity import benjamini_hochberg
from karat.stats.student import t_above, t_quantile
from karat.tables.days import day_text
from karat.tables.online.watch import Change, Contribution, Moved

_SPAN = re.compile(r"\s*(\d{1,4})\s*([hdw])\s*", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 24 * WEEK}
_LONGEST = 28  # days


@dataclass(frozen=True, slots=True)
class Window:
    """Hours of a day, or whole days."""

    first_day: int  # first local day, in days since 1970-01-01
    last_day: int  # last local day, likewise
    first_hour: int = 0  # first local hour, 0 to 23; 0 for whole days
    end_hour: int = 24  # hour after the last, 1 to 24; 24 for whole days

    @property
    def whole_days(self) -> bool:
        """Whether it has whole days."""
        return self.end_hour - self.first_hour == 24

    @property
    def label(self) -> str:
        """``2026-11-20`` · ``2026-11-14 to 2026-11-20`` · ``2026-11-20 06:00-12:00``."""
        first = day_text(self.first_day)
        if self.first_day < self.last_day:
            return f"{first} to {day_text(self.last_day)}"
        if self.whole_days:
            return first
        return f"{first} {self.first_hour:02}:00-{self.end_hour:02}:00"


def hours_of(text: str, *, what: str = "--window") -> int:
    """Hours of a span: ``1h``, ``6h``, ``1d``, ``7d``, ``1w``.

    Raises:
        UsageError: not a duration.
    """
    match = _SPAN.fullmatch(text)
    hours = int(match[1]) * _HOURS[match[2].casefold()] if match else 0
    if not hours:
        raise UsageError(f"{what} {text!r} is not a duration", fix=f"{what} 1d, 6h or 28d")
    return hours


def latest(text: str, day: int, hour: int) -> Window:
    """The latest window that has ended by an hour.

    Args:
        text: Its length: hours that divide a day, or up to 28 whole days.
        day: Current local day, in days since 1970-01-01.
        hour: Current hour, 0 to 24.

    Raises:
        UsageError: invalid length.
    """
    hours = hours_of(text)
    if hours < 24:
        if 24 % hours:
            raise UsageError(
                f"--window {text}: {hours} hours do not divide a day",
                fix="--window 1h, 2h, 3h, 4h, 6h, 8h, 12h or 1d",
            )
        end = hour - hour % hours
        if end == 0:
            return Window(day - 1, day - 1, 24 - hours, 24)
        return Window(day, day, end - hours, end)
    if hours % 24 or hours > 24 * _LONGEST:
        raise UsageError(
            f"--window {text} is neither hours of one day nor 1 to {_LONGEST} whole days",
            fix="--window 1d, 7d or 6h",
        )
    last = day if hour == 24 else day - 1
    return Window(last - hours // 24 + 1, last)


def earlier(window: Window, history: int) -> list[Window]:
    """Earlier comparable windows, the latest first: the same weekdays and hours.

    Args:
        window: The window to compare.
        history: Number of days before the window to search.
    """
    length = window.last_day - window.first_day + 1
    step = -(-length // WEEK) * WEEK  # whole weeks, without overlap
    return [
        Window(window.first_day - back, window.last_day - back, window.first_hour, window.end_hour)
        for back in range(step, history + 1, step)
    ]


LEAST_WINDOWS = 3
LEAST_USERS = 30
"""Users in the window, and in the earlier ones on average; below, means are not normal."""
LEVEL = 0.05
_LEAST_TESTS = 5  # series needed to estimate how much weeks differ
_OTHERS = 2  # largest weight of the other series relative to the series itself
_LEAST_RATIO = 0.01  # of variance to sampling variance: below, it is chance or rounding


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric in one window."""

    value: float  # the value, in the metric's unit
    error: float  # standard error of sampling, 0 or more
    n: int  # denominator
    users: int


@dataclass(frozen=True)
class Series:
    """A metric in one slice."""

    metric: Metric  # the metric, with a direction
    slice: Mapping[str, str]  # dimension to value; empty for all
    now: Reading | None  # reading in the window; None without a value
    before: Sequence[Reading]  # readings of the comparable windows with a value, the latest first
    margin: float = 0.0  # a change up to this is negligible; in the metric's unit


@dataclass(frozen=True, slots=True)
class _Spread:
    """The variance of a series without a change."""

    expected: float  # mean of the earlier values
    sampling: float  # sampling variance of an earlier window, on average
    sampling_now: float  # sampling variance of the window, half way between its own and the usual
    sampling_usual: float  # usual sampling variance of a window of its size
    ratio: float  # variance between earlier windows over `sampling`; 0 if that is 0
    windows: int  # number of earlier windows


def compare(series: Sequence[Series]) -> list[Change]:
    """Each series with its verdict, in the order given; see the module.

    Overall series and slices are separate families of tests: more slices do not change the verdict
    on the whole.
    """
    changes: dict[int, Change] = {}
    for sliced in (False, True):
        places = [at for at, one in enumerate(series) if bool(one.slice) is sliced]
        changes |= zip(places, _compared([series[at] for at in places]), strict=True)
    return [changes[at] for at in range(len(series))]


def _compared(series: Sequence[Series]) -> list[Change]:
    spreads = [None if _untestable(one) else _spread(one) for one in series]
    tested = [spread for spread in spreads if spread is not None and spread.sampling > 0]
    ratios = np.array([spread.ratio for spread in tested])
    freedom = np.array([spread.windows - 1 for spread in tested])
    prior = spread_prior(ratios, freedom)
    changes = [_change(one, spread, prior) for one, spread in zip(series, spreads, strict=True)]
    adjusted = benjamini_hochberg([change.p for change in changes])
    return [
        replace(change, p_adjusted=p, verdict=_verdict(change, p))
        for change, p in zip(changes, adjusted, strict=True)
    ]


def spread_prior(ratios: Floats, freedom: Floats) -> tuple[float, float]:
    """The prior of the variance ratio from all series: its degrees of freedom, and the ratio.

    Args:
        ratios: Variance between windows over sampling variance, of each series; shape (s,).
        freedom: Degrees of freedom of each, 1 or more; shape (s,).

    Returns:
        Degrees of freedom and a ratio of 1 or more; 0 and 1 if there are too few series.

    Source: Smyth 2004, section 6.2, by the moments of log ratios.
    """
    from scipy.special import digamma, polygamma

    if len(ratios) < _LEAST_TESTS:
        return 0.0, 1.0
    half = freedom / 2
    logs = np.log(np.maximum(ratios, _LEAST_RATIO)) - digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    most = _OTHERS * float(np.median(freedom))
    worth = min(most, 2 * _trigamma_inverse(excess)) if excess > 0 else most
    level = math.exp(float(logs.mean()) + float(digamma(worth / 2)) - math.log(worth / 2))
    return worth, max(1.0, level)


def _trigamma_inverse(value: float) -> float:
    """The inverse of the trigamma function above 0, by Newton's method on its reciprocal."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-8 * x:
            break
    return x


def _untestable(one: Series) -> str:
    """The reason why a series cannot be tested; empty if it can."""
    if len(one.before) < LEAST_WINDOWS:
        had = "1 earlier window has" if len(one.before) == 1 else f"{len(one.before)} have"
        return f"{LEAST_WINDOWS} earlier windows are needed, and {had} a value"
    usual = sum(reading.users for reading in one.before) / len(one.before)
    if one.now is None:
        n = sum(reading.n for reading in one.before) / len(one.before)
        return f"a denominator of 0 in the window, and {n:,.0f} in earlier ones"
    if min(one.now.users, usual) < LEAST_USERS:
        users = "1 user" if one.now.users == 1 else f"{one.now.users:,} users"
        return f"{users} in the window and {int(usual):,} in earlier ones; {LEAST_USERS} are needed"
    return ""


def _spread(one: Series) -> _Spread:
    assert one.now is not None
    values = np.array([reading.value for reading in one.before])
    sizes = np.array([max(reading.n, 1) for reading in one.before], np.float64)
    size = max(one.now.n, 1)
    unit, unit_now = unit_variances(one)
    sampling = unit * float((1 / sizes).mean())
    return _Spread(
        expected=float(values.mean()),
        sampling=sampling,
        # The usual variance is too small for rates near 0, the new one too large for chance jumps:
        # half way, the false alarm rate is kept, and twice as many jumps are detected.
        sampling_now=(unit + max(unit, unit_now)) / 2 / size,
        sampling_usual=unit / size,
        ratio=float(values.var(ddof=1)) / sampling if sampling else 0.0,
        windows=len(values),
    )


def unit_variances(one: Series) -> tuple[float, float]:
    """Sampling variance per search in earlier windows, and in the window, which has a value.

    It is averaged over windows: one in which something never happens would have a variance of 0.
    """
    assert one.now is not None
    values = np.array([reading.value for reading in one.before])
    sizes = np.array([max(reading.n, 1) for reading in one.before], np.float64)
    errors = np.array([reading.error for reading in one.before])
    size = max(one.now.n, 1)
    unit, unit_now = float((errors**2 * sizes).mean()), one.now.error**2 * size
    if unit == unit_now == 0 and one.metric.unit == "share" and (values != one.now.value).any():
        rate = (float((values * sizes).sum()) + one.now.value * size + 0.5) / (
            float(sizes.sum()) + size + 1
        )
        unit = rate * (1 - rate)
    return unit or unit_now, unit_now


def _change(one: Series, spread: _Spread | None, prior: tuple[float, float]) -> Change:
    now, before = one.now, one.before
    expected = sum(reading.value for reading in before) / len(before) if before else None
    change = Change(
        metric=one.metric.name,
        version=one.metric.version,
        direction=one.metric.direction,
        unit=one.metric.unit,
        slice=one.slice,
        verdict="cannot_tell",
        reason=_untestable(one),
        value=None if now is None else now.value,
        expected=expected,
        usual_low=None,
        usual_high=None,
        change=None if now is None or expected is None else now.value - expected,
        margin=one.margin,
        n=0 if now is None else now.n,
        users=0 if now is None else now.users,
        windows=len(before),
        before=tuple(reading.value for reading in before),
        df=None,
        p=None,
        p_adjusted=None,
    )
    if spread is None:
        return change
    assert change.change is not None
    worth, level = prior
    own = spread.windows - 1
    df = int(worth + own)
    ratio = max(1.0, (worth * level + own * spread.ratio) / (worth + own))
    # The variance between weeks, and that of the expected value.
    between = spread.sampling * (ratio - 1 + ratio / spread.windows)
    error = math.sqrt(between + spread.sampling_now)
    beyond = max(0.0, abs(change.change) - one.margin)
    if error == 0:
        if beyond == 0:
            return replace(change, df=df, p=1.0)
        return replace(change, reason="all earlier windows had the same value")
    low, high = _range(one.metric, spread.expected, df, math.sqrt(between + spread.sampling_usual))
    return replace(
        change,
        usual_low=low,
        usual_high=high,
        df=df,
        p=min(1.0, 2 * t_above(beyond / error, df)),
    )


def _range(metric: Metric, expected: float, df: int, error: float) -> tuple[float, float]:
    """The usual range, within the metric's bounds."""
    reach = t_quantile(0.975, df) * error
    lowest = -math.inf if metric.unit == "money" else 0.0
    highest = 1.0 if metric.unit == "share" else math.inf
    if metric.highest is not None:
        highest = min(highest, metric.highest)
    return max(lowest, expected - reach), min(highest, expected + reach)


def _verdict(change: Change, adjusted: float | None) -> Moved:
    if change.p is None or adjusted is None or change.change is None:
        return "cannot_tell"
    if adjusted > LEVEL or change.change == 0:
        return "usual"
    return "better" if (change.change > 0) == (change.direction == "higher") else "worse"


def ordered(changes: Sequence[Change]) -> list[Change]:
    """Worse changes first, then better, by p-value; then the rest in their order."""
    rank = {"worse": 0, "better": 1}

    def key(change: Change) -> tuple[int, float]:
        first = rank.get(change.verdict, 2)
        # Engines add up in different orders: values that differ in the last digits are equal.
        return first, float(f"{change.p or 0.0:.6g}") if first < 2 else 0.0

    return sorted(changes, key=key)


def contributions(
    now: pl.DataFrame, before: Sequence[pl.DataFrame]
) -> tuple[list[Contribution], float]:
    """The contribution of each query to the change of a ratio, the largest first.

    Args:
        now: ``query``, ``numerator`` and ``denominator`` of each query in the window; null, an
            empty search, is a query of its own.
        before: The same of each earlier window with a denominator.

    Returns:
        A row for each query, with its folded text as ``text``, and the change they add up to.
    """
    whole = float(now["denominator"].sum())
    wholes = [float(frame["denominator"].sum()) for frame in before]
    expected = float(
        np.mean(
            [
                float(frame["numerator"].sum()) / total
                for frame, total in zip(before, wholes, strict=True)
            ]
        )
    )
    parts = [_part(now, whole, expected, 1.0)]
    parts += [
        _part(frame, total, expected, -1 / len(before), earlier=True)
        for frame, total in zip(before, wholes, strict=True)
    ]
    by_query = pl.concat(parts).group_by("query").agg(pl.all().exclude("query").sum())
    change = float(now["numerator"].sum()) / whole - expected
    up = 1 if change >= 0 else -1
    by_query = by_query.sort((pl.col("adds") * -up).round(12), -pl.col("denominator"), "query")
    rows = [
        Contribution(
            query=row["query"],
            text=row["query"],
            value=row["numerator"] / row["denominator"] if row["denominator"] else None,
            before=row["earlier"] / row["earlier_over"] if row["earlier_over"] else None,
            n=row["denominator"],
            n_before=row["earlier_over"] / len(before),
            adds=row["adds"],
        )
        for row in by_query.iter_rows(named=True)
    ]
    return rows, change


def _part(
    frame: pl.DataFrame, total: float, expected: float, sign: float, *, earlier: bool = False
) -> pl.DataFrame:
    numerator, denominator = (
        pl.col(name).cast(pl.Float64) for name in ("numerator", "denominator")
    )
    none = pl.lit(0.0)
    return frame.select(
        pl.col("query").fill_null(""),
        (none if earlier else numerator).alias("numerator"),
        (none if earlier else denominator).alias("denominator"),
        (numerator if earlier else none).alias("earlier"),
        (denominator if earlier else none).alias("earlier_over"),
        (sign * (numerator - expected * denominator) / total).alias("adds"),
    )


Margins = Callable[[Metric, float | None], float]
"""From a metric and its expected value to the smallest relevant change."""


def read_margins(texts: Sequence[str], find: Callable[[str], Metric]) -> Margins:
    """Margins from text: ``5%`` (of the expected value), ``CTR=2%``, ``ZeroResults=0.01``.

    Args:
        texts: The texts; a later one overrides an earlier one.
        find: Finds the metric of a name.

    Raises:
        UsageError: an invalid margin, or an unknown metric.
    """
    general, special = (0.0, False), {}
    for text in texts:
        name, equals, size = text.rpartition("=")
        read = margin(size)
        if read is None or not (equals or read[1]):
            raise UsageError(
                f"invalid margin {text!r}", fix="--margin 5%, or --margin ZeroResults=0.01"
            )
        if equals:
            special[find(name).name] = read
        else:
            general = read

    def margins(metric: Metric, expected: float | None) -> float:
        size, relative = special.get(metric.name, general)
        return size * abs(expected or 0.0) if relative else size

    return margins
