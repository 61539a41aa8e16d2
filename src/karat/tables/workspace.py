"""Workspace: the settings in ``karat.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from karat.tables.about import brief
from karat.tables.schema import Scale

if TYPE_CHECKING:
    from karat.tables.engines import Secret

State = Literal["waiting", "done", "failed"]
"""State of a comparison: its numbers are requested, computed, or could not be computed."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A number that says how search is doing, with its change."""

    title: str  # in words
    what: str  # the measure or metric
    unit: Literal["number", "share"]
    value: float
    change: float | None  # against what was before; None without that
    better: bool | None  # whether the change is for the better; None for none
    since: str  # when the value is of, in words
    against: str  # what `change` is against, in words
    points: Sequence[float | None]  # its course, oldest first
    # Whether the change is significant: `yes` | `no`; empty where that is not tested
    apart: str = ""


@dataclass(frozen=True)
class RunRow:
    """A stored run."""

    id: int  # number in the store
    name: str  # its first name, or the one it was requested by
    sha256: str  # hash of its content, without times
    path: str  # its Parquet file, relative to the workspace; absolute if it is outside
    queries: int
    rows: int  # number of documents returned
    about: dict[str, Any]  # metadata: configuration, commit and so on
    added_us: int  # when it was first imported, microseconds UTC
    # Time of the last import under each of its names, microseconds UTC
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """Hash of its content with its times: of what depends on them."""
        times = self.about.get("times")
        return f"{self.sha256} {times}" if times else self.sha256

    @property
    def recorded(self) -> str:
        """The metadata of its file in one line; empty without any."""
        return brief(self.about.get("recorded", {}))


@dataclass(frozen=True)
class ComparisonRow:
    """A stored comparison; its numbers are an artifact."""

    id: int
    set_id: int
    name: str
    runs: tuple[int, ...]  # ids of the runs, the baseline first
    settings: dict[str, Any]  # measures, attributes, margin, edition
    made_by: str
    created_us: int
    state: State
    error: str | None  # why it failed; None otherwise
    computed_us: int | None  # when its numbers were computed, or failed
    judgment_id: int | None  # the newest judgment when they were computed; None before
    key: str | None  # key of the artifact with its numbers; None before


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
    """Which attributes of a document a rater sees."""

    title: str = "title"  # the attribute for the heading; the id is shown for documents without it
    body: str = "text"  # the attribute for the text
    image: str | None = None  # the attribute for the URL of an image; None for no images
    url: str = "url"  # the attribute for the URL of the document
    more: tuple[str, ...] = ()  # more attributes to show, each with its name


DEFAULTS = ("measures", "by", "scale", "fully_judged")  # options that `[defaults]` can set


@dataclass(frozen=True)
class Defaults:
    """Default options from ``[defaults]`` in ``karat.toml``."""

    source: str  # the file
    measures: tuple[str, ...] = ()  # names of measures, as written; empty for none
    by: tuple[str, ...] = ()  # attributes to slice by; empty for none
    # Lowest and highest grade as written, `"0-3"` or two numbers; None if not set
    scale: str | Sequence[float] | None = None
    fully_judged: bool = False  # whether documents without a judgment are declared not relevant
    # The line of each key, from 1, where known
    lines: Mapping[str, int] = field(default_factory=dict)


WebhookForm = Literal["json", "slack"]
"""What a webhook gets: the event as it is, or as a message of Slack."""
WEBHOOK_FORMS: tuple[WebhookForm, ...] = ("json", "slack")


@dataclass(frozen=True)
class WatchConfig:
    """How the server watches the event log, and who hears of new alerts: ``[watch]``."""

    every_us: int = 3_600_000_000  # how often, in microseconds; 0 for never
    window: str = "1d"  # length of the window, as of `karat online watch`
    # Slices: `arm`, an attribute of the log, or `golden:NAME`; empty for all in the log
    by: tuple[str, ...] = ()
    notify: str | Secret | None = field(default=None, repr=False)  # URL to post new alerts to
    form: WebhookForm = "json"  # what is posted


@dataclass(frozen=True)
class WorkspaceConfig:
    """The settings in ``karat.toml``.

    Attributes:
        guideline: The file with the guideline for raters.
    """

    root: Path  # the folder of the file
    # URL of the database, with an absolute path; it may contain a password
    store: str = field(repr=False)
    runs: Path  # folder of the runs
    golden: str = "golden"  # name of the golden set
    scale: Scale = (0.0, 3.0)  # lowest and highest grade
    # Meaning of each grade: a word and a criterion, as in `Right: answers it fully`
    grades: Mapping[float, str] = field(default_factory=lambda: dict(GRADES))
    raters: int = 2  # raters for each pair, 1 or more
    repeats: float = 0.05  # share of pairs shown to the same rater again (hidden repeats), 0 to 0.5
    # Share of gold items among the pairs of a rater, if there are any, 0 to 0.5
    golds: float = 0.05
    # `query`: the documents of a query in sequence · `mixed`: all pairs shuffled
    order: Order = "query"
    # How long a pair is reserved for the rater it was shown to, in microseconds
    lease_us: int = 600_000_000
    weights: KappaWeights = "quadratic"  # weighting of disagreements in Cohen's kappa
    at_least: float = 0.7  # target of kappa for freezing an edition
    # Whether freezing below the target is an error; otherwise it gives a warning
    refuse: bool = False
    # Which attributes of a document a rater sees in the browser
    card: Card = field(default_factory=Card)
    # Allowed origins of document images, such as `https://cdn.example.org`
    images: tuple[str, ...] = ()
    histories: tuple[Path, ...] = ()  # history files (`--history`) for the trend pages
    events: str | Path = Path("events")  # folder of the events, or its `s3://` address
    timezone: str = "UTC"  # time zone of the days of events, such as `Europe/Berlin`
    watch: WatchConfig = field(default_factory=WatchConfig)
    notes: tuple[str, ...] = ()  # sentences a reader of the file must know

    @property
    def guideline(self) -> Path:
        """The file with the guideline for raters."""
        return self.root / "guideline.md"
