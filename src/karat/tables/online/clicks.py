"""Click models, and grades from clicks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from karat.tables.golden.agreement import Confusion, Figure

PropensitySource = Literal["randomised", "interleaved"]


@dataclass(frozen=True, slots=True)
class Examination:
    """How likely a place of the results is looked at, where the first rank is 1."""

    rank: int  # from 1
    value: float  # relative to rank 1
    ci_low: float | None  # 95 % interval; None for rank 1, which is fixed
    ci_high: float | None
    shown: float  # documents shown there
    presentation: str | None = None  # with `presentation`: how they were shown


@dataclass(frozen=True, slots=True)
class Propensities:
    """Examination from traffic whose order was random: it needs no model."""

    source: PropensitySource
    searches: int
    examination: Sequence[Examination]
    # Rank of the largest difference to the model's examination, of those where the intervals do not
    # overlap; None if they agree, or the model has none
    differs_at: int | None


@dataclass(frozen=True, slots=True)
class Stratum:
    """A click model of the searches with one value of an attribute."""

    value: str | None  # of the attribute; None for searches without it
    pages: int
    examination: Sequence[Examination] | None
    identified: bool


@dataclass(frozen=True)
class ClickFit:
    """A click model fitted to a log."""

    model: str
    log_likelihood: float  # of a page, per rank (natural logarithm): mean over ranks, then pages
    perplexity: float  # mean over ranks; 1 is perfect, 2 a coin
    perplexity_by_rank: Sequence[float]  # from rank 1
    # By rank; None for models without it, and where positions are not identified
    examination: Sequence[Examination] | None
    identified: bool  # whether the log can separate positions from documents
    seconds: float  # it took to fit and evaluate
    reason: str  # why it is not identified; empty if it is
    held_out: bool  # whether likelihood and perplexity are of a held-out log
    pages: int  # pages of results that were fitted
    pairs: int  # different pairs of query and document
    impressions: int
    clicks: int  # documents clicked, each once a page
    # Held-out documents shown that the model never saw for that query; None without a held-out log
    unseen: int | None
    # Queries whose clicks it predicts worst: `query`, `pages`, `perplexity`
    worst_queries: Sequence[Mapping[str, Any]]
    iterations: int  # of its estimation; 0 for models that count
    by: str | None = None  # attribute of `strata`
    strata: Sequence[Stratum] = ()
    propensities: Propensities | None = None  # None without traffic in random order
    notes: Sequence[str] = field(default_factory=list)
    engine: str = "polars"
    simulated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ClickOrigin:
    """How grades were made from clicks; the metadata of their file."""

    model: str  # of the relevance; `naive` for the rule that takes position for relevance
    cuts: Sequence[float]  # cut points on the relevance, ascending
    grades: Sequence[float]  # of the scale, ascending; one more than `cuts`
    least: float  # effective impressions of a pair that gets a grade
    half_life_us: int | None  # after which a page counts half; None if all count the same
    log: str
    made_us: int
    identified: bool  # whether positions were separated from documents; not by the naive rule
    # Traffic whose examination was taken; None if the model's own
    propensities: PropensitySource | None = None
    pairs: int = 0  # that have a grade
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class GradeCount:
    """Pairs of one grade."""

    grade: float
    pairs: int
    uncertain: int  # of these, pairs whose interval has a cut point, so another grade is possible


@dataclass(frozen=True, slots=True)
class RatedByCtr:
    """A pair that raw click rates overrate or underrate."""

    query_id: str
    text: str  # of the query
    doc_id: str
    ctr: float  # clicks / impressions
    value: float  # relevance without the effect of position
    ci_low: float | None  # 95 % interval of `value`
    ci_high: float | None
    rank: float  # mean rank at which it was shown
    shown: float
    ctr_place: int  # among the graded documents of its query, by `ctr`, from 1
    value_place: int  # by `value`


@dataclass(frozen=True)
class ClickJudgments:
    """Grades made from a log's clicks."""

    origin: ClickOrigin
    pairs: int  # of query and document that were shown
    graded: int  # of these, pairs with a grade
    too_few: int  # pairs with too few effective impressions
    by_grade: Sequence[GradeCount]
    queries: int  # with a graded pair
    unmatched_queries: int  # queries of the log that the golden set does not have: left out
    unmatched_pairs: int  # their pairs
    overrated: Sequence[RatedByCtr]  # by raw click rates, most first
    underrated: Sequence[RatedByCtr]  # likewise
    pages: int  # of results
    impressions: int
    clicks: int
    file: str | None  # where they were written; None for a preview
    seconds: float
    notes: Sequence[str] = field(default_factory=list)
    engine: str = "polars"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ClickAgreementPart:
    """Agreement of clicks with people over some pairs."""

    value: str | None  # the class, or the ranks shown; None for all pairs
    kappa: Figure  # Cohen's κ of the grades
    ordered: Figure  # share of two documents of a query, of unequal grades, ordered as people do
    correlation: Figure  # Spearman's, of the relevance from clicks with people's grades


@dataclass(frozen=True, slots=True)
class OpposingGrade:
    """A pair whose clicks contradict people's grade."""

    query_id: str
    text: str  # of the query
    doc_id: str
    people: float  # people's grade
    grade: float  # the grade from clicks
    clicks: Literal["higher", "lower"]  # than people's grade
    value: float  # relevance from clicks
    ci_low: float
    ci_high: float
    effective: float  # effective impressions: how often it was looked at, as expected
    rank: float  # mean rank at which it was shown


@dataclass(frozen=True)
class ClickAgreement:
    """Agreement of grades from clicks with those of people."""

    origin: ClickOrigin
    weights: str  # of κ: none, linear or quadratic
    all: ClickAgreementPart  # over all pairs that both graded
    only_clicks: int  # pairs that only clicks grade
    only_people: int  # pairs that only people graded
    by: str | None  # attribute of the queries of `classes`
    classes: Sequence[ClickAgreementPart]
    ranks: Sequence[ClickAgreementPart]  # by the mean rank shown, rounded
    # Cut points with the highest κ over all pairs; None for too few
    best_cuts: Sequence[float] | None
    cross_fitted: Figure  # Cohen's κ by cut points chosen on the other queries, in five parts
    confusion: Confusion  # people in rows, clicks in columns
    oppose: int  # pairs whose interval is on the other side of relevant than people's grade
    opposing: Sequence[OpposingGrade]  # the farthest of them
    queued: int | None = None  # of these, put into the judging queue; None if not asked for
    notes: Sequence[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ModelFit:
    """How well a click model predicts the clicks of later days, and its examination."""

    model: str
    log_likelihood: float  # as of ``ClickFit``
    perplexity: float
    perplexity_by_rank: Sequence[float]
    # Of the whole log; None for models without it, and where positions are not identified
    examination: Sequence[Examination] | None


@dataclass(frozen=True, slots=True)
class GradedPair:
    """A pair with a grade from clicks."""

    query_id: str
    text: str  # of the query
    doc_id: str
    grade: float
    people: float | None  # people's grade; None without one
    value: float  # relevance
    ci_low: float
    ci_high: float
    effective: float  # impressions
    shown: float
    clicked: float
    rank: float  # mean rank at which it was shown


@dataclass(frozen=True)
class ClickOverview:
    """Click models of a log, the grades that one of them makes, and their agreement with people."""

    fits: Sequence[ModelFit]
    fitted: Sequence[str]  # first and last day of the log that `fits` are fitted to
    held_out: Sequence[str] | None  # of the days they predict; None if the log is too short
    identified: bool  # whether the log can tell positions from documents
    reason: str  # why not; empty if it can
    propensities: Propensities | None
    refused: str  # why the model makes no grades; empty if it does
    judgments: ClickJudgments | None  # None if refused
    agreement: ClickAgreement | None  # None without grades of people
    pairs: Sequence[GradedPair]  # those most often looked at, at most 1,000
    added: ClickOrigin | None  # of the grades that the golden set has; None without any
