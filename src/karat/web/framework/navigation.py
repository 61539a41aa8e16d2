"""Navigation: the stages and their tabs, described once; the menu, the tabs and search read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote


@dataclass(frozen=True)
class Tab:
    """A page in the navigation; the pages below its path belong to it."""

    name: str
    path: str  # without the base; ``{golden}`` is the current golden set
    also: Sequence[str] = ()  # further paths that belong to it

    def at(self, golden: str) -> str:
        return self.path.replace("{golden}", quote(golden, safe=""))


@dataclass(frozen=True)
class Stage:
    """An entry of the menu, which leads to its first tab; one without tabs is not shown."""

    name: str
    icon: str  # an SVG path on a 24 × 24 grid, for phones
    tabs: Sequence[Tab]


_SET = "/golden/{golden}"
_STAR = "M12 3l2.7 5.6 6.1.8-4.5 4.3 1.1 6.1-5.4-3-5.4 3 1.1-6.1L3.2 9.4l6.1-.8z"
STAGES = (
    Stage("Home", "M4 11l8-7 8 7v9h-5v-6H9v6H4z", (Tab("Home", "/"),)),
    Stage(
        "Golden",
        _STAR,
        (
            Tab("Sets", "/golden"),
            Tab("Overview", _SET),
            Tab("Queries", f"{_SET}/queries", also=[f"{_SET}/chosen"]),
            Tab("Pairs", f"{_SET}/pairs", also=[f"{_SET}/pair"]),
            Tab("Judgments", f"{_SET}/judgments"),
            Tab("Agreement", f"{_SET}/agreement"),
            Tab("Disagreements", f"{_SET}/disagreements"),
            Tab("Editions", f"{_SET}/editions", also=[f"{_SET}/changes"]),
            Tab("Import and export", f"{_SET}/exchange"),
            Tab("From clicks", f"{_SET}/clicks"),
            Tab("Machine judges", "/judges", also=[f"{_SET}/doubts"]),
        ),
    ),
    Stage(
        "Offline",
        "M5 20v-8M12 20V4M19 20v-5",
        (
            Tab("Runs", "/runs"),
            Tab("Comparisons", "/comparisons"),
            Tab("Trends", "/trends"),
            Tab("Diagnosis", "/diagnosis"),
            Tab("Playground", "/playground", also=["/jobs"]),
            Tab("Engines", "/engines"),
        ),
    ),
    Stage(
        "Online",
        "M3 12h4l3-8 4 16 3-8h4",
        (
            Tab("Dashboard", "/online"),
            Tab("Alerts", "/online/watch"),
            Tab("Worst queries", "/online/queries"),
            Tab("Searches", "/online/rows"),
            Tab("Offline vs online", "/online/against"),
        ),
    ),
    Stage(
        "Release",
        "M5 19L19 5M9 5h10v10",
        (
            Tab("Board", "/releases"),
            Tab("Shadow", "/shadow"),
            Tab("Experiments", "/experiments"),
            Tab("Planning", "/experiments/planning"),
            Tab("Interleaving", "/experiments/interleaving"),
        ),
    ),
)
"""The menu, in order. Raters do not have it: they see only Judge."""


@dataclass(frozen=True)
class Place:
    """Where an address is in the navigation."""

    stage: Stage | None  # none outside of the stages, as on the account page
    tab: Tab | None
    golden: str | None  # the golden set in the address; None without one

    @property
    def tabs(self) -> Sequence[Tab]:
        """The tabs of its stage; none if the stage is a single page."""
        return () if self.stage is None or len(self.stage.tabs) == 1 else self.stage.tabs


def place_of(path: str) -> Place:
    """The stage and tab of the longest path that an address, without the base, is below."""
    parts = path.strip("/").split("/")
    golden = unquote(parts[1]) if parts[0] in {"golden", "judge"} and len(parts) > 1 else None
    depth, stage, tab = 0, None, None
    for each in STAGES:
        for one in each.tabs:
            for beginning in (one.path, *one.also):
                own = beginning.strip("/").split("/")
                fits = all(a in {b, "{golden}"} for a, b in zip(own, parts, strict=False))
                if fits and depth < len(own) <= len(parts):
                    depth, stage, tab = len(own), each, one
    return Place(stage, tab, golden)
