"""Click quality: satisfied clicks, dwell, and the time to the first click."""

from __future__ import annotations

from karat.online.metrics.clicks import SEEN
from karat.online.metrics.entry import BINNED, Distribution, Metric, Ratio
from karat.online.metrics.expressions import (
    column,
    equals,
    not_clicked,
    to_first_click,
)

_FOX = "Fox et al. 2005, TOIS 23(2), doi:10.1145/1059981.1059982"
_KAPLAN = "Kaplan & Meier 1958, JASA 53"
_RESTRICTED = "Royston & Parmar 2013, BMC Med. Res. Methodol. 13:152"
_LAST = (
    "The end of the last click of a session is unknown; its dwell is censored: at least the known "
    "time, neither dropped nor 0."
)
_LEAVERS = (
    "Kaplan-Meier assumes that censoring is non-informative. Last clicks are often the longest: "
    "then it is too low. Page hides or heartbeats in the log fix this."
)
_TABS = "A page left open in another tab counts as read; no dwell counts for more than 30 minutes."
_CLOCK = "With a server's clock it includes the latency: read it together with Latency."

SAT = Metric(
    name="SAT",
    version=2,
    title="satisfied-click rate",
    definition="searches with a click read for 30 s or more or whose document was then put into "
    "the cart or bought, a last click of unknown dwell counting as one / searches with results "
    "seen; least: none of those, most: all that may be",
    says="how often a search leads to a document that users stay on",
    source=_FOX,
    traps=(
        (
            "30 s is a convention: the right threshold depends on the page (Kim et al. 2014, "
            "WSDM), and some logs have no clear threshold. Calibrate it, and set it with --rule "
            "satisfied=…"
        ),
        f"{_LAST} least and most are the bounds; more users do not narrow them.",
        (
            "A user who puts a document into the cart after reading it for 5 s is satisfied: carts "
            "and purchases in the same session count, if the log has them."
        ),
        _TABS,
    ),
    direction="higher",
    unit="share",
    compute=Ratio(
        "searches",
        column("sat"),
        column("seen"),
        least=column("sat_low"),
        most=column("sat_high"),
    ),
    needs=("click", SEEN),
    family="reading",
)

QUICK_BACK = Metric(
    name="QuickBack",
    version=1,
    title="quick-back rate",
    definition="searches with a click left within 10 s / searches with a click",
    says="how often users click and come back at once",
    source=f"{_FOX}; Kim et al. 2014, WSDM",
    traps=(
        "A click whose end was not logged does not count as a quick back.",
        "Nor does one whose document was put into the cart or bought in the same session.",
        "Where a glance is enough (opening hours), it is not a failure.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("quick_back"), equals("clicked", 1)),
    needs=("click",),
    family="reading",
)

DWELL_NAIVE = Metric(
    name="Dwell(naive)",
    version=1,
    title="mean dwell of clicks whose end is known",
    definition="mean dwell of the clicks that are not censored",
    says="the dwell that other tools report, without clicks whose end is unknown",
    source="karat, for comparison with other tools; not a target",
    traps=(
        (
            "It drops the last click of each session, so it covers only users who came back: it is "
            "too low, and lower the better search gets. Dwell and Dwell(mean) are not affected."
        ),
    ),
    direction="none",
    unit="seconds",
    compute=Distribution("clicks", "dwell", column("dwell_us"), column("censored"), "mean"),
    needs=("click",),
    family="reading",
)

DWELL = Metric(
    name="Dwell",
    version=2,
    title="median dwell (Kaplan-Meier)",
    definition="the time that half of the clicks are read for, with clicks of unknown end censored "
    "at the last known time",
    says="how long users typically stay on a clicked document",
    source=_KAPLAN,
    traps=(
        _LAST,
        _LEAVERS,
        "If more than half are censored, there is no median.",
        _TABS,
        BINNED,
    ),
    direction="higher",
    unit="seconds",
    compute=Distribution("clicks", "dwell", column("dwell_us"), column("censored"), "median"),
    needs=("click",),
    family="reading",
)

DWELL_MEAN = Metric(
    name="Dwell(mean)",
    version=2,
    title="mean dwell, up to 10 minutes (Kaplan-Meier)",
    definition="mean of the smaller of dwell and 10 minutes: the area under the Kaplan-Meier curve",
    says="how long users stay on a clicked document, on average, 10 minutes at most",
    source=f"{_KAPLAN}; {_RESTRICTED}",
    traps=(
        _LAST,
        _LEAVERS,
        (
            "If no click was observed for 10 minutes, only bounds are known: the others left at "
            "once, or stayed."
        ),
        _TABS,
        BINNED,
    ),
    direction="higher",
    unit="seconds",
    compute=Distribution(
        "clicks", "dwell", column("dwell_us"), column("censored"), "restricted_mean"
    ),
    needs=("click",),
    family="reading",
)

FIRST_CLICK = Metric(
    name="TimeToFirstClick",
    version=3,
    title="median time to the first click (Kaplan-Meier)",
    definition="the time after which half of the searches with results seen have a click, those "
    "without one censored when they were left",
    says="how long users need to find something to click on",
    source=f"{_KAPLAN}; Radlinski, Kurup & Joachims 2008, CIKM",
    traps=(
        (
            "Searches without a click are censored when they are left, not dropped: over searches "
            "with a click alone, it falls when undecided users give up."
        ),
        "If less than half would ever have a click, there is no median.",
        _CLOCK,
        BINNED,
    ),
    direction="lower",
    unit="seconds",
    compute=Distribution("searches", "first_click", to_first_click, not_clicked, "median"),
    needs=("click", SEEN),
    family="reading",
)

FIRST_CLICK_MEAN = Metric(
    name="TimeToFirstClick(mean)",
    version=3,
    title="mean time to the first click, up to 60 s (Kaplan-Meier)",
    definition="mean of the smaller of the time to the first click and 60 s, over searches with "
    "results seen: the area under the Kaplan-Meier curve",
    says="how long users go without a click, on average, 60 s at most",
    source=f"{_KAPLAN}; {_RESTRICTED}",
    traps=(
        "Searches without a click are censored when they are left, not dropped.",
        _CLOCK,
        BINNED,
    ),
    direction="lower",
    unit="seconds",
    compute=Distribution("searches", "first_click", to_first_click, not_clicked, "restricted_mean"),
    needs=("click", SEEN),
    family="reading",
)

FAMILY = (
    SAT,
    QUICK_BACK,
    DWELL,
    DWELL_MEAN,
    DWELL_NAIVE,
    FIRST_CLICK,
    FIRST_CLICK_MEAN,
)
