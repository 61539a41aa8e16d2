"""Workspace: the settings in ``karat.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from karat.tables.scale import Scale

KappaWeights = Literal["none", "linear", "quadratic"]
KAPPA_WEIGHTS: tuple[KappaWeights, ...] = ("none", "linear", "quadratic")
Order = Literal["query", "mixed"]
ORDERS: tuple[Order, ...] = ("query", "mixed")
GRADES: Mapping[float, str] = {
    0.0: "Useless: about something else",
    1.0: "Related: on the subject, but it does not answer",
    2.0: "Useful: answers in part, or the answer is buried in it",
    3.0: "Right: answers it, directly and fully",
}
"""Default meanings of the grades of the scale 0-3."""


@dataclass(frozen=True)
class Card:
    """Which attributes of a document a rater sees.

    Attributes:
        title: The attribute for the heading; the id is shown for documents without it.
        body: The attribute for the text.
        image: The attribute for the URL of an image; None for no images.
        url: The attribute for the URL of the document.
        more: More attributes to show, each with its name.
    """

    title: str = "title"
    body: str = "text"
    image: str | None = None
    url: str = "url"
    more: tuple[str, ...] = ()


DEFAULTS = ("measures", "by", "scale", "fully_judged")
"""Options that ``[defaults]`` can set."""


@dataclass(frozen=True)
class Defaults:
    """Default options from ``[defaults]`` in ``karat.toml``.

    Attributes:
        source: The file.
        measures: Names of measures, as written; empty for none.
        by: Attributes to slice by; empty for none.
        scale: Lowest and highest grade as written, ``"0-3"`` or two numbers; None if not set.
        fully_judged: Whether documents without a judgment are declared not relevant.
        lines: The line of each key, from 1, where known.
    """

    source: str
    measures: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    scale: str | Sequence[float] | None = None
    fully_judged: bool = False
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkspaceConfig:
    """The settings in ``karat.toml``.

    Attributes:
        root: The folder of the file.
        store: URL of the database, with an absolute path; it may contain a password.
        runs: Folder of the runs.
        golden: Name of the golden set.
        scale: Lowest and highest grade.
        grades: Meaning of each grade: a word and a criterion, as in ``Right: answers it fully``.
        raters: Raters for each pair, 1 or more.
        repeats: Share of pairs shown to the same rater again (hidden repeats), 0 to 0.5.
        golds: Share of gold items among the pairs of a rater, if there are any, 0 to 0.5.
        order: ``query``: the documents of a query in sequence · ``mixed``: all pairs shuffled.
        lease_us: How long a pair is reserved for the rater it was shown to, in microseconds.
        weights: Weighting of disagreements in Cohen's kappa.
        at_least: Target of kappa for freezing an edition.
        refuse: Whether freezing below the target is an error; otherwise it gives a warning.
        card: Which attributes of a document a rater sees in the browser.
        images: Allowed origins of document images, such as ``https://cdn.example.org``.
        histories: History files (``--history``) for the trend pages.
        events: Folder of the events.
        timezone: Time zone of the days of events, such as ``Europe/Berlin``.
        notes: Sentences a reader of the file must know.
        guideline: The file with the guideline for raters.
    """

    root: Path
    store: str = field(repr=False)
    runs: Path
    golden: str = "golden"
    scale: Scale = (0.0, 3.0)
    grades: Mapping[float, str] = field(default_factory=lambda: dict(GRADES))
    raters: int = 2
    repeats: float = 0.05
    golds: float = 0.05
    order: Order = "query"
    lease_us: int = 600_000_000
    weights: KappaWeights = "quadratic"
    at_least: float = 0.7
    refuse: bool = False
    card: Card = field(default_factory=Card)
    images: tuple[str, ...] = ()
    histories: tuple[Path, ...] = ()
    events: Path = Path("events")
    timezone: str = "UTC"
    notes: tuple[str, ...] = ()

    @property
    def guideline(self) -> Path:
        """The file with the guideline for raters."""
        return self.root / "guideline.md"
