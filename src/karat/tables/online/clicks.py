"""Click models, and grades from clicks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
    # Largest difference to the model's examination, at a rank whose interval excludes it; None if
    # they agree, or the model has none
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
