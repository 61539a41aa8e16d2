"""Agreement: how far raters agree, over all, by pair of raters, by rater, by class, over time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number and how sure it is.

    Attributes:
        name: What it is, as in ``κ, quadratic weights``.
        value: None if it is undefined.
        ci_low: Lower end of the 95 % interval, or None.
        ci_high: Upper end.
        queries: How many have a say in it.
        pairs: Pairs of query and document that it is over.
        reason: Why there is no value, or no interval; empty if there is.
        weights: Of Cohen's κ, what a disagreement counts; None of anything else.
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
    """How often two gave which grades to the same document.

    Attributes:
        first: Who is in the rows; None if every two ratings are counted both ways round.
        second: Who is in the columns; None likewise.
        grades: Of rows and columns, ascending.
        counts: One row for each grade of the first.
    """

    first: str | None
    second: str | None
    grades: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TwoRaters:
    """Two raters, over what both graded.

    Attributes:
        first: One of them.
        second: The other.
        kappa: With the weights of the headline.
        equal: Share of equal grades.
        confusion: Their grades.
    """

    first: str
    second: str
    kappa: Figure
    equal: Figure
    confusion: Confusion


@dataclass(frozen=True, slots=True)
class OneRater:
    """One rater beside the others.

    Attributes:
        rater: Who.
        judged: Pairs judged, those that could not be judged included; repeats are not.
        cannot_judge: Share of them that could not be judged.
        seconds: Median time of a judgment, or None.
        kappa: Against all the others' grades, with the weights of the headline.
        leniency: Mean grade minus the others' mean, over what others graded too.
        self_kappa: Against the rater's own earlier grade of the same pair (hidden repeats).
        self_equal: Share of repeats with the same grade.
        gold: Share of pairs of known grade that got it.
        gold_leniency: Mean grade minus the known one.
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
    """One rater's first half of what others graded too, against the second, by time.

    Attributes:
        rater: Who.
        what: ``agreement`` (κ against the others) or ``leniency`` (grade minus the others').
        first: In the first half.
        second: In the second.
        change: Second minus first; there is drift where its interval leaves out 0.
    """

    rater: str
    what: str
    first: Figure
    second: Figure
    change: Figure


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far raters agree on the grades they gave first, before anything was settled.

    Attributes:
        headline: Cohen's κ of two raters; of more, the mean κ of each two, weighted by the pairs
            both graded.
        weights: What a disagreement counts in it: none, linear or quadratic.
        target: What it is to be above.
        needed: Pairs still to be judged twice for its interval to be above; 0 if it is, None if
            more judgments would not help or nothing can be told.
        raters: Everybody whose grades count, the first first.
        queries: That have a pair graded twice.
        pairs: Graded by two or more.
        figures: The headline and everything else, over all.
        two_raters: Of each two raters that graded a pair both.
        one_rater: Of each rater.
        classes: The headline in each class of queries, if classes were given.
        guidelines: The headline where all graded under one version, for each version.
        confusion: Over all.
        drift: Of each rater.
        notes: What is to be known of these numbers.
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
        """The headline in a sentence: the figure, its interval, and what is still to be done."""
        found = self.headline
        if found.value is None:
            return f"agreement cannot be told: {found.reason}"
        kind = "κ" if len(self.raters) == 2 else f"mean κ of {len(self.raters)} raters"
        queries = f"{found.queries} quer{'y' if found.queries == 1 else 'ies'}"
        weights = "no weights" if self.weights == "none" else f"{self.weights} weights"
        span = _span(found.ci_low, found.ci_high)
        said = f"{kind} {_short(found.value)}{span}, {weights}, {queries}"
        target = _short(self.target, "g")
        if found.ci_low is None:
            return f"{said}; how sure that is cannot be told: {found.reason}"
        if self.needed is None:
            return f"{said}; more judgments alone would not bring it above {target}"
        if self.needed == 0:
            return f"{said}; surely above {target}"
        more = f"{_about(self.needed)} more double judgment{'s' if self.needed > 1 else ''}"
        return f"{said}; about {more} to be sure it is above {target}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it, the sentence included."""
        return {"sentence": self.sentence, **asdict(self)}


def _short(value: float, form: str = ".2f") -> str:
    """.74 for 0.74, as agreement is written."""
    text = format(value, form)
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def _span(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" ({_short(low)}{' to ' if low < 0 else '-'}{_short(high)})"


def _about(count: int) -> int:
    """Rounded up: to tens from ten on, to two digits from a thousand on."""
    digits = len(str(count))
    unit: int = 10 ** max(min(1, digits - 1), digits - 2)
    return -(-count // unit) * unit
