"""Workspace: where a team keeps its golden sets, judgments and runs, and by which rules."""

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
"""What the grades of the scale 0-3 are taken for, unless a team says otherwise."""


@dataclass(frozen=True)
class Card:
    """Which attributes of a document a rater sees, and as what.

    Attributes:
        title: Its heading; the id where a document has none.
        body: Its text.
        image: Address of a picture; None for none.
        url: Where it lies, to be opened beside.
        more: Further attributes, each with its name.
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
    """What ``[defaults]`` of a ``karat.toml`` says of options that are not given.

    Attributes:
        source: The file.
        measures: Names of measures, as written; empty for none.
        by: Attributes to slice by; empty for none.
        scale: Lowest and highest grade as written, ``"0-3"`` or two numbers; None if not set.
        fully_judged: Whether documents without a judgment are declared not relevant.
        lines: The line of each key, from 1, as far as it was found.
    """

    source: str
    measures: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    scale: str | Sequence[float] | None = None
    fully_judged: bool = False
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkspaceConfig:
    """What ``karat.toml`` says.

    Attributes:
        root: The folder it lies in.
        store: URL of the database, with an absolute path; it may hold a password.
        runs: Folder of the runs.
        golden: Name of the golden set.
        scale: Lowest and highest grade.
        grades: What each grade is: a word and a sign, as in ``Right: answers it fully``.
        raters: Raters for each pair, 1 or more.
        repeats: Share of pairs that a rater sees again without knowing, 0 to 0.5.
        golds: Share of gold items among what a rater sees, where there are any, 0 to 0.5.
        order: ``query``: the documents of a query in a row · ``mixed``: all in any order.
        lease_us: For how long a rater who was shown a pair has it alone.
        weights: How far apart two grades count as, in Cohen's kappa.
        at_least: What kappa should be above, before an edition is frozen.
        refuse: Whether an edition is refused otherwise; else it is frozen with a warning.
        card: What a rater sees of a document in the browser.
        images: Origins that pictures of documents may come from, as ``https://cdn.example.org``.
        histories: Files that ``--history`` writes, for the pages of trends.
        events: Folder of the events, what users did.
        timezone: Where a day of events begins, as in ``Europe/Berlin``.
        notes: What is to be known of the file, in sentences.
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
