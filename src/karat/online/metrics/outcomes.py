"""Outcomes: success, carts, purchases, and retention."""

from __future__ import annotations

from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import column, known, one

_KOHAVI = (
    "Kohavi et al. 2012, KDD (Trustworthy online controlled experiments: five puzzling outcomes "
    "explained)"
)
_BING = (
    "It is not a measure of success: a bug in Bing's ranker raised queries per user by about 10 % "
    "and revenue by about 30 %, as users had to search more (Kohavi 2012)."
)
_WINDOW = (
    "A search counts once the day after it has passed; otherwise the newest searches would look "
    "worse than they are."
)
_TOUCH = (
    "It is attributed to the last search in which the document was clicked or seen; a document "
    "found in a recommendation is not attributed to a search, and is counted separately."
)
_SESSIONS = (
    "A session ends after 30 idle minutes, a convention: it may mix several tasks (Jones & "
    "Klinkner 2008, CIKM)."
)

SUCCESS = Metric(
    name="SuccessPerSession",
    version=1,
    title="success per session",
    definition="sessions with a satisfied click, cart, purchase or answer, a last click or answer "
    "of unknown length counting as one / sessions with a search; least: none of those, most: all "
    "that may be",
    says="how often sessions with a search are successful",
    source="karat; Deng & Shi 2016, KDD (Data-driven metric development)",
    traps=(
        _SESSIONS,
        (
            "A last click of unknown dwell counts as a success, as in SAT; so does a last answer. "
            "least and most are the bounds."
        ),
        "One success is enough for several tasks in one session.",
    ),
    direction="higher",
    unit="share",
    compute=Ratio(
        "sessions",
        column("success"),
        one,
        least=column("success_low"),
        most=column("success_high"),
    ),
    needs=("click|cart|purchase|answer",),
    family="outcomes",
)

CART = Metric(
    name="AddToCart",
    version=1,
    title="add-to-cart rate",
    definition="searches with something put into the cart / searches",
    says="how often a search leads to something in the cart",
    source="karat; last-touch attribution",
    traps=(
        _TOUCH,
        "In the same session, within 30 minutes.",
        "A search without results counts: it cannot sell anything.",
    ),
    direction="higher",
    unit="share",
    compute=Ratio("searches", column("carts"), one),
    needs=("cart",),
    family="outcomes",
)

CONVERSION = Metric(
    name="Conversion",
    version=1,
    title="conversion rate",
    definition="searches with a purchase within a day / searches a day old or older",
    says="how often a search leads to a purchase",
    source="karat; last-touch attribution, closed windows only",
    traps=(_WINDOW, _TOUCH, "A search without results counts: it cannot sell anything."),
    direction="higher",
    unit="share",
    compute=Ratio("searches", column("purchases"), known("purchases")),
    needs=("purchase",),
    family="outcomes",
)

REVENUE = Metric(
    name="RevenuePerSearch",
    version=1,
    title="revenue per search",
    definition="what was paid within a day / searches a day old or older",
    says="the revenue of a search",
    source="karat; last-touch attribution, closed windows only",
    traps=(
        _BING,
        _WINDOW,
        _TOUCH,
        "It is sensitive to one huge order: values are not capped. Look at its interval first.",
    ),
    direction="none",
    unit="money",
    compute=Ratio("searches", column("revenue"), known("revenue")),
    needs=("purchase", "value"),
    family="outcomes",
)

SEARCHES_PER_SESSION = Metric(
    name="SearchesPerSession",
    version=1,
    title="searches per session",
    definition="searches / sessions with a search",
    says="how many searches users make in one session",
    source="Radlinski, Kurup & Joachims 2008, CIKM, doi:10.1145/1458082.1458092",
    traps=(
        (
            "More is neither better nor worse: it rises with interest and with struggle. "
            "Reformulation and TasksPerSession distinguish the two."
        ),
        _SESSIONS,
    ),
    direction="none",
    unit="count",
    compute=Ratio("sessions", column("searches"), one),
    needs=(),
    family="outcomes",
)

TASKS = Metric(
    name="TasksPerSession",
    version=1,
    title="tasks per session",
    definition="chains of reformulations / sessions with a search",
    says="how many different things users look for in one session",
    source="karat; Jones & Klinkner 2008, CIKM (Beyond the session timeout)",
    traps=(
        (
            "A chain is detected by the similarity of texts: a reformulation in quite different "
            "words counts as another task."
        ),
        _SESSIONS,
    ),
    direction="none",
    unit="count",
    compute=Ratio("sessions", column("tasks"), one),
    needs=("query",),
    family="outcomes",
)

SESSIONS_PER_USER = Metric(
    name="SessionsPerUser",
    version=1,
    title="sessions per user",
    definition="sessions with a search / users with a search",
    says="how often users come back to search",
    source=_KOHAVI,
    traps=(
        "It grows with the length of the period: compare periods of equal length only.",
        "Users who never came are not included, and a user who deletes cookies counts twice.",
    ),
    direction="higher",
    unit="count",
    compute=Ratio("sessions", one, None),
    needs=(),
    family="outcomes",
)

SEARCHES_PER_USER = Metric(
    name="SearchesPerUser",
    version=1,
    title="searches per user",
    definition="searches / users with a search",
    says="how much users search, for whatever reason",
    source=_KOHAVI,
    traps=(_BING, "It grows with the length of the period."),
    direction="none",
    unit="count",
    compute=Ratio("searches", one, None),
    needs=(),
    family="outcomes",
)

FAMILY = (
    SUCCESS,
    CART,
    CONVERSION,
    REVENUE,
    SEARCHES_PER_SESSION,
    TASKS,
    SESSIONS_PER_USER,
    SEARCHES_PER_USER,
)
