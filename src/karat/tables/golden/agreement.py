"""Agreement of raters: overall, by pair of raters, by rater, by query class, over time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """A statistic with its confidence interval.

    Attributes:
        name: Its name, such as ``κ, quadratic weights``.
        value: The value; None if it is undefined.
        ci_low: Lower end of the 95 % interval; None without an interval.
        ci_high: Upper end.
        queries: Number of queries behind it.
        pairs: Number of (query, document) pairs behind it.
        reason: Why there is no value, or no interval; empty if there are both.
        weights: Weighting of disagreements in Cohen's κ; None for other statistics.
    """

    name: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    queries: int
    pairs: int
    reason: str = ""
    weights: str | None = None


@dataclass(frozen=True, slots=True)
class Confusion:
    """The confusion matrix of the grades of two raters.

    Attributes:
        first: The rater in the rows; None if it is over all raters, each pair counted both ways.
        second: The rater in the columns; None if it is over all raters.
        grades: The grades of rows and columns, ascending.
        counts: Number of pairs; one row for each grade of ``first``.
    """

    first: str | None
    second: str | None
    grades: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TwoRaters:
    """Agreement of two raters on the pairs that both graded.

    Attributes:
        first: One of them.
        second: The other.
        kappa: Cohen's κ with the weights of the headline.
        equal: Share of equal grades, 0 to 1.
        confusion: Their confusion matrix.
    """

    first: str
    second: str
    kappa: Figure
    equal: Figure
    confusion: Confusion


@dataclass(frozen=True, slots=True)
class OneRater:
    """One rater compared with the others.

    Attributes:
        rater: Name of the rater.
        judged: Number of pairs judged, including ``cannot_judge``, excluding hidden repeats.
        cannot_judge: Share of them that could not be judged, 0 to 1.
        seconds: Median time of a judgment; None if unknown.
        kappa: Cohen's κ against all other raters, with the weights of the headline.
        leniency: Mean grade minus the mean of the others, over pairs that others graded too.
        self_kappa: Cohen's κ against the rater's own earlier grades (hidden repeats).
        self_equal: Share of repeats with the same grade, 0 to 1.
        gold: Share of gold items that got the known grade, 0 to 1.
        gold_leniency: Mean grade minus the known grade, over gold items.
    """

    rater: str
    judged: int
    cannot_judge: float
    seconds: float | None
    kappa: Figure
    leniency: Figure
    self_kappa: Figure
    self_equal: Figure
    gold: Figure
    gold_leniency: Figure


@dataclass(frozen=True, slots=True)
class Drift:
    """The earlier half of a rater's judgments against the later half, on pairs others graded too.

    Attributes:
        rater: Name of the rater.
        what: ``agreement`` (κ against the others) or ``leniency`` (grade minus the others').
        first: In the earlier half.
        second: In the later half.
        change: ``second`` minus ``first``; there is drift if its interval excludes 0.
    """

    rater: str
    what: str
    first: Figure
    second: Figure
    change: Figure


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters on their first grades, before adjudication.

    Attributes:
        headline: Cohen's κ of two raters; with more raters, the mean κ of all pairs of raters,
            weighted by the pairs both graded.
        weights: Weighting of disagreements: none, linear or quadratic.
        target: The target of ``headline``.
        needed: Number of pairs still to be judged twice until the interval is above the target; 0
            if it is, None if more judgments would not help or that is unknown.
        raters: The raters, in the order of their first judgment.
        queries: Number of queries with a pair graded twice.
        pairs: Number of pairs graded by two or more raters.
        figures: The headline and all other statistics over all pairs.
        two_raters: One row for each two raters that graded the same pair.
        one_rater: One row for each rater.
        classes: The headline in each class of queries, if classes were given.
        guidelines: For each version of the guideline, the headline over pairs graded under it only.
        confusion: Confusion matrix over all raters.
        drift: Drift of each rater.
        notes: Sentences a reader must know.
    """

    headline: Figure
    weights: str
    target: float
    needed: int | None
    raters: tuple[str, ...]
    queries: int
    pairs: int
    figures: tuple[Figure, ...]
    two_raters: tuple[TwoRaters, ...]
    one_rater: tuple[OneRater, ...]
    classes: tuple[Figure, ...]
    guidelines: tuple[Figure, ...]
    confusion: Confusion
    drift: tuple[Drift, ...]
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The headline in a sentence: the value, its interval, and the judgments still needed."""
        headline = self.headline
        if headline.value is None:
            return f"agreement not available: {headline.reason}"
        kind = "κ" if len(self.raters) == 2 else f"mean κ of {len(self.raters)} raters"
        queries = f"{headline.queries} quer{'y' if headline.queries == 1 else 'ies'}"
        weights = "no weights" if self.weights == "none" else f"{self.weights} weights"
        span = _span(headline.ci_low, headline.ci_high)
        summary = f"{kind} {_short(headline.value)}{span}, {weights}, {queries}"
        target = _short(self.target, "g")
        if headline.ci_low is None:
            return f"{summary}; no interval: {headline.reason}"
        if self.needed is None:
            return f"{summary}; more judgments alone would not raise it above {target}"
        if self.needed == 0:
            return f"{summary}; significantly above {target}"
        more = f"{_about(self.needed)} more double judgment{'s' if self.needed > 1 else ''}"
        return f"{summary}; about {more} to show that it is above {target}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, with the sentence."""
        return {"sentence": self.sentence, **asdict(self)}


def _short(value: float, form: str = ".2f") -> str:
    """A value without its leading zero: .74."""
    text = format(value, form)
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def _span(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" ({_short(low)}{' to ' if low < 0 else '-'}{_short(high)})"


def _about(count: int) -> int:
    """Rounded up: to tens from 10, to two significant digits from 1000."""
    digits = len(str(count))
    unit: int = 10 ** max(min(1, digits - 1), digits - 2)
    return -(-count // unit) * unit
