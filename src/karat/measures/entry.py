"""Entries: everything about a measure, with the functions that compute it.

The catalogue, the reference page, the law tests and the parity tests all read these entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from karat.errors import UsageError, nearest
from karat.measures.evidence import Evidence, Floats, Mask, or_nan

Cutoff = Literal["none", "optional", "required", "recall", "multiple"]
Aggregate = Literal["mean", "sum", "geometric"]


class _Required:
    """Marks a parameter without a default, as tools disagree on it."""

    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()
NEVER = (
    "never by its formula; but a query without a relevant document is left out of every mean, or "
    "counts as 0 with `--complete`"
)
"""For measures that have a value wherever there are judgments."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a measure."""

    name: str  # as typed
    meaning: str  # one line
    read: Callable[[str], Any]  # parses text; raises ValueError that describes the allowed values
    default: Any = REQUIRED  # its default, or `REQUIRED`
    show: Callable[[Any], str] = str  # formats a value as text that `read` parses


@dataclass(frozen=True, slots=True)
class Terms:
    """An additive measure: per query, the sum of ``term`` over its hits divided by ``norm``."""

    gain: Floats  # gain of each hit; shape (h,)
    discount: Floats  # discount at its rank; shape (h,)
    term: Floats  # what it adds before normalising, 0 where it does not count; shape (h,)
    norm: Floats  # divisor of the sum; NaN where the measure is undefined; shape (n,)

    @classmethod
    def counting(cls, counted: Mask, norm: Floats, discount: Floats | None = None) -> Terms:
        """A sum over the hits that count, of 1 or a discount; undefined where ``norm`` is 0."""
        gain = counted.astype(np.float64)
        term = gain if discount is None else np.where(counted, discount, 0.0)
        discount = np.ones(len(counted)) if discount is None else discount
        return cls(gain, discount, term, or_nan(norm))

    def values(self, evidence: Evidence) -> Floats:
        """One value for each query; NaN where undefined; shape (n,)."""
        total = evidence.per_query(self.term)
        with np.errstate(divide="ignore", invalid="ignore"):
            return total / self.norm


@dataclass(frozen=True, slots=True)
class Equal:
    """A tool and version that gives the same number, and what to type there."""

    tool: str
    typed: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example, run by the tests."""

    measure: str  # the name to compute
    retrieved: tuple[float | None, ...]  # grades by rank; None is a document without a judgment
    missed: tuple[float, ...]  # grades of judged documents that were not retrieved
    value: float  # the result, to the digits given
    arithmetic: str  # the calculation by hand


@dataclass(frozen=True)
class Entry:
    """Everything about one measure."""

    symbol: str  # its printed name
    title: str  # its name in words
    formula: str  # in plain text
    says: str  # what it shows, in a sentence a newcomer understands
    source: str  # paper or tool
    low: float  # lowest possible value
    high: float | None  # highest possible value; None if unbounded
    undefined: str  # when it has no value
    # `(evidence, k=cutoff, **parameters)` to `Terms` or one value for each query, NaN where
    # undefined
    function: Callable[..., Terms | Floats]
    # Whether higher or lower is better; `none` for neither
    direction: Literal["higher", "lower", "none"] = "higher"
    # Whether it supports `@k`: a rank, a `recall` level from 0 to 1, or a `multiple` of the number
    # of relevant documents
    cutoff: Cutoff = "none"
    parameters: tuple[Parameter, ...] = ()  # in the order printed
    aggregate: Aggregate = "mean"  # how the values of queries are aggregated
    equals: tuple[Equal, ...] = ()  # tools that give the same number
    example: Example | None = None  # a worked example
    aliases: tuple[str, ...] = ()  # other spellings of the symbol
    trec: str | None = None  # trec_eval's name without a cutoff, or None
    trec_at: str | None = None  # trec_eval's name with one (`{k}`), or None
    trec_cutoffs: tuple[float, ...] = ()  # the default cutoffs of trec_eval
    integer: bool = False  # printed by trec_eval as a whole number
    summary_only: bool = False  # trec_eval prints it only for all queries together
    # Raises UsageError for settings that cannot be combined
    check: Callable[[Mapping[str, Any]], None] | None = None
    # Whether moving a better document up past a worse one never lowers the value. Then the best and
    # the worst order of tied documents are known, and with them the exact band.
    monotone_in_swaps: bool = False
    # Whether the order of documents matters; if not, ties matter only where a ranking is cut
    # through them
    ordered: bool = True
    # `(evidence, k=cutoff, **parameters)` to the mean over all orders of tied documents, for each
    # query; None without a closed form. Not for geometric means: the expectation of one is not the
    # geometric mean of expectations.
    expected: Callable[..., Floats | None] | None = None
    # `(evidence, k=cutoff, **parameters)` to the lowest and the highest value over all grades that
    # unjudged documents could have; None if not known
    bounds: Callable[..., tuple[Floats, Floats]] | None = None

    @property
    def ours(self) -> bool:
        """Whether it is one of karat's measures, not a user's."""
        return self.function.__module__.startswith("karat.")

    @property
    def with_ties(self) -> str:
        """What is known where documents tie, in words."""
        if any(parameter.name == "of" for parameter in self.parameters):
            return "as of the inner measure"
        if not self.ordered:
            return "their order does not matter"
        band = "exact lowest and highest value" if self.monotone_in_swaps else ""
        mean = "exact mean over all orders" if self.expected else ""
        return " and ".join(filter(None, (band, mean))) or "not known"

    @property
    def with_unjudged(self) -> str:
        """What is known where documents are unjudged, in words."""
        return "exact lowest and highest value" if self.bounds else "not known"

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name.

        Raises:
            UsageError: an unknown parameter; suggests the nearest.
        """
        names = [parameter.name for parameter in self.parameters]
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        if name in {"k", "cutoff"} and self.cutoff != "none":
            raise UsageError(f"{self.symbol} takes its cutoff after @", fix=f"{self.symbol}@10")
        takes = f"it takes {', '.join(names)}" if names else "it takes none"
        raise UsageError(
            f"{self.symbol} has no parameter {name!r}; {takes}", nearest=nearest(name, names, 1)
        )


@dataclass(frozen=True, eq=False, repr=False)
class Measure:
    """An entry with its parameters and cutoff.

    Compute it with ``measure(evidence)``; ``str(measure)`` is its name, which parses to the same
    measure.
    """

    entry: Entry
    cutoff: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, evidence: Evidence) -> Floats:
        """One value for each judged query, NaN where the measure is undefined; shape (n,)."""
        result = self._computed(evidence)
        return result.values(evidence) if isinstance(result, Terms) else result

    def terms(self, evidence: Evidence) -> Terms | None:
        """What each hit adds, or None for a measure that is not a sum over hits."""
        result = self._computed(evidence)
        return result if isinstance(result, Terms) else None

    @property
    def monotone_in_swaps(self) -> bool:
        """Whether moving a better document up never lowers it or its inner measure."""
        inner = self.settings.get("of")
        inside = (
            inner.monotone_in_swaps or not inner.ordered if isinstance(inner, Measure) else True
        )
        return self.entry.monotone_in_swaps and inside

    @property
    def ordered(self) -> bool:
        """Whether the order of documents matters, to it and to its inner measure."""
        inner = self.settings.get("of")
        return self.entry.ordered and (inner.ordered if isinstance(inner, Measure) else True)

    def expected(self, evidence: Evidence) -> Floats | None:
        """The mean over all orders of tied documents; shape (n,); None without a closed form."""
        function = self.entry.expected
        return None if function is None else function(evidence, **self._arguments())

    def bounds(self, evidence: Evidence) -> tuple[Floats, Floats] | None:
        """Lowest and highest value over all grades of the unjudged; None if not known."""
        function = self.entry.bounds
        return None if function is None else function(evidence, **self._arguments())

    def _arguments(self) -> dict[str, Any]:
        settings = dict(self.settings)
        if self.entry.cutoff != "none":
            settings["k"] = self.cutoff
        return settings

    def _computed(self, evidence: Evidence) -> Terms | Floats:
        settings = self._arguments()
        ours = self.entry.ours
        try:
            result = self.entry.function(evidence, **settings)
        except Exception as error:
            if ours:
                raise
            raise UsageError(f"the measure {self} failed: {error!r}") from error
        if not ours and not isinstance(result, Terms):
            result = np.asarray(result, np.float64)
            if result.shape != (evidence.n,):
                raise UsageError(
                    f"the measure {self} returned an array of shape {result.shape}; expected "
                    f"({evidence.n},)",
                    fix="return one value for each query of the evidence, NaN where it has none",
                )
        return result

    @property
    def aggregate(self) -> Aggregate:
        """How the values of queries are aggregated; that of the inner measure, if any."""
        inner = self.settings.get("of")
        return inner.aggregate if isinstance(inner, Measure) else self.entry.aggregate

    @property
    def depth(self) -> int | None:
        """The cutoff k, if the measure has one that is a rank."""
        ranked = self.entry.cutoff in {"optional", "required"}
        return int(self.cutoff) if ranked and self.cutoff is not None else None

    def __str__(self) -> str:
        shown = [
            f"{parameter.name}={parameter.show(self.settings[parameter.name])}"
            if parameter.name != "of"
            else str(self.settings["of"])
            for parameter in self.entry.parameters
            if self.settings[parameter.name] != parameter.default
        ]
        inside = f"({', '.join(shown)})" if shown else ""
        at = "" if self.cutoff is None else f"@{show_number(self.cutoff)}"
        return f"{self.entry.symbol}{inside}{at}"

    def __repr__(self) -> str:
        return f"<Measure {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def show_number(value: float) -> str:
    """A number in its shortest form: 10, 0.5, 2.75."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
