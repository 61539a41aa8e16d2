"""Agreement of raters: overall, by pair of raters, by rater, by query class, over time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """A statistic with its confidence interval."""

    name: str  # its name, such as `κ, quadratic weights`
    value: float | None  # the value; None if it is undefined
    ci_low: float | None  # lower end of the 95 % interval; None without an interval
    ci_high: float | None  # upper end
    queries: int  # number of queries behind it
    pairs: int  # number of (query, document) pairs behind it
    reason: str = ""  # why there is no value, or no interval; empty if there are both
    weights: str | None = None  # weighting of disagreements in Cohen's κ; None for other statistics


@dataclass(frozen=True, slots=True)
class Confusion:
    """The confusion matrix of the grades of two raters."""

    # The rater in the rows; None if it is over all raters, each pair counted both ways
    first: str | None
    second: str | None  # the rater in the columns; None if it is over all raters
    grades: tuple[float, ...]  # the grades of rows and columns, ascending
    counts: tuple[tuple[int, ...], ...]  # number of pairs; one row for each grade of `first`


@dataclass(frozen=True, slots=True)
class TwoRaters:
    """Agreement of two raters on the pairs that both graded."""

    first: str  # one of them
    second: str  # the other
    kappa: Figure  # Cohen's κ with the weights of the headline
    equal: Figure  # share of equal grades, 0 to 1
    confusion: Confusion  # their confusion matrix


@dataclass(frozen=True, slots=True)
class OneRater:
    """One rater compared with the others."""

    rater: str
    judged: int  # number of pairs judged, including `cannot_judge`, excluding hidden repeats
    cannot_judge: float  # share of them that could not be judged, 0 to 1
    seconds: float | None  # median time of a judgment; None if unknown
    kappa: Figure  # Cohen's κ against all other raters, with the weights of the headline
    leniency: Figure  # mean grade minus the mean of the others, over pairs that others graded too
    self_kappa: Figure  # Cohen's κ against the rater's own earlier grades (hidden repeats)
    self_equal: Figure  # share of repeats with the same grade, 0 to 1
    gold: Figure  # share of gold items that got the known grade, 0 to 1
    gold_leniency: Figure  # mean grade minus the known grade, over gold items


@dataclass(frozen=True, slots=True)
class Drift:
    """A rater's earlier half of judgments against the later, on pairs others graded too."""

    rater: str
    what: str  # `agreement` (κ against the others) or `leniency` (grade minus the others')
    first: Figure  # in the earlier half
    second: Figure  # in the later half
    change: Figure  # `second` minus `first`; there is drift if its interval excludes 0


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters on their first grades, before adjudication."""

    # Cohen's κ of two raters; with more raters, the mean κ of all pairs of raters, weighted by the
    # pairs both graded
    headline: Figure
    weights: str  # weighting of disagreements: none, linear or quadratic
    target: float  # the target of `headline`
    # Number of pairs still to be judged twice until the interval is above the target; 0 if it is,
    # None if more judgments would not help or that is unknown
    needed: int | None
    raters: tuple[str, ...]  # the raters, in the order of their first judgment
    queries: int  # number of queries with a pair graded twice
    pairs: int  # number of pairs graded by two or more raters
    figures: tuple[Figure, ...]  # the headline and all other statistics over all pairs
    two_raters: tuple[TwoRaters, ...]  # one row for each two raters that graded the same pair
    one_rater: tuple[OneRater, ...]  # one row for each rater
    classes: tuple[Figure, ...]  # the headline in each class of queries, if classes were given
    # For each version of the guideline, the headline over pairs graded under it only
    guidelines: tuple[Figure, ...]
    confusion: Confusion  # confusion matrix over all raters
    drift: tuple[Drift, ...]  # drift of each rater
    notes: tuple[str, ...] = ()  # sentences a reader must know

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
