"""Every metric on the golden log: golden_log/events.csv, whose twelve searches are in searches.csv.

In the comments a search is the first letter of its user and its number: A1 is ada's first, D2 is
dan's second. Results were seen in eight: A1, A3, B1, B2, C1, C4, D1 and D2; A2 and C2 found
nothing, C3 is an error, and nothing says what fay saw (F1). A1, B1, D1 and F1 were clicked.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

import karat
from karat.online.metrics.registry import all_metrics
from karat.tables.online.evaluation import OnlineResult, OnlineResults

# Value, and what it is over.
EXPECTED: dict[str, tuple[float | Fraction, int]] = {
    # A1, B1 and D1 of the eight seen. Each has a click at position 1.
    "CTR": (Fraction(3, 8), 8),
    "CTR@5": (Fraction(3, 8), 8),
    "MRCR": (Fraction(3, 8), 8),
    "MRCR(clicked)": (1, 3),
    # Clicks 3 + 2 + 2 of items A1 3, A3 5, B1 9, B2 9, C1 7, C4 3, D1 4, D2 4; F1 has no items.
    "ItemCTR": (Fraction(7, 44), 44),
    # A1 at 2, 1 and 11, B1 at 1 and 4, D1 at 1 and 3: (½ + 1 + ½^10) + (1 + ½^3) + (1 + ½^2).
    "PaulScore(F=0.5)": ((0.5 + 1 + 0.5**10 + 1 + 0.5**3 + 1 + 0.5**2) / 8, 8),
    "PaulScore(F=0.9)": ((0.9 + 1 + 0.9**10 + 1 + 0.9**3 + 1 + 0.9**2) / 8, 8),
    # A2, of all but C2 (a lone filter), C3 (an error) and D2 (a timeout).
    "ZeroResults": (Fraction(1, 9), 9),
    # C1 and C2, of all but C3 and D2.
    "ZeroResults(filtered)": (Fraction(2, 10), 10),
    # A2, C1, A3, C4, D2; of C2, C3 and F1 it is not known whether anything was seen.
    "Abandonment": (Fraction(5, 9), 9),
    "Abandonment(zero)": (Fraction(1, 9), 9),  # A2
    "Abandonment(reformulated)": (Fraction(1, 9), 9),  # C1
    "Abandonment(terminal)": (Fraction(3, 9), 9),  # A3, C4, D2
    # A2 reorders, C1 respells, C3 adds.
    "Reformulation": (Fraction(3, 12), 12),
    "Reformulation(reorder)": (Fraction(1, 12), 12),
    "Reformulation(respell)": (Fraction(1, 12), 12),
    "Reformulation(add)": (Fraction(1, 12), 12),
    "Reformulation(drop)": (0, 12),
    "Reformulation(substitute)": (0, 12),
    # A1 (40 s), B1 (30 min, censored there), D1 (19 min 51 s).
    "SAT": (Fraction(3, 8), 8),
    # A1 (1 s), D1 (5 s); B1 (3 s) was bought, F1 was read for 20 s.
    "QuickBack": (Fraction(2, 4), 4),
    # 1, 3, 5, 10, 20, 40, 1191 s, and 1800 s censored: of eight, four have ended by 10 s.
    "Dwell": (10, 8),
    "Dwell(mean)": (Fraction(1 + 3 + 5 + 10 + 20 + 40 + 600 + 600, 8), 8),
    "Dwell(naive)": (Fraction(1 + 3 + 5 + 10 + 20 + 40 + 1191, 7), 7),
    # Clicks after 4 (D1), 5 (B1), 8 s (A1); left without one after 0, 0, 1, 30, 90 s (A3, D2, C4,
    # B2, C1). At 4 s five are left: 4/5, then 3/4 and 2/3 of that: 0.8, 0.6, 0.4 still wait.
    "TimeToFirstClick": (8, 8),
    # 4·1 + 1·0.8 + 3·0.6 + 52·0.4 up to 60 s.
    "TimeToFirstClick(mean)": (Fraction(274, 10), 8),
    # A session of each of ada, bob, cyn (her last answer counts as read), dan, one more of bob's,
    # and fay's without success.
    "SuccessPerSession": (Fraction(5, 6), 6),
    "SearchesPerSession": (Fraction(12, 6), 6),
    "TasksPerSession": (Fraction(2 + 1 + 1 + 2 + 2 + 1, 6), 6),
    "SessionsPerUser": (Fraction(6, 5), 5),
    "SearchesPerUser": (Fraction(12, 5), 5),
    "AddToCart": (Fraction(1, 12), 12),  # B2
    # B1, for 20.5; the windows of B2, D1 and D2 are open when the log ends.
    "Conversion": (Fraction(1, 9), 9),
    "RevenuePerSearch": (20.5 / 9, 9),
    # 30, 40, 40, 40, 50, 60, 70, 90, 100, 120, 900, 5000 ms: the 6th, and the 12th of 12.
    "Latency(p50)": (60, 12),
    "Latency(p95)": (5000, 12),
    "Latency(p99)": (5000, 12),
    "ErrorRate": (Fraction(1, 12), 12),  # C3
    "TimeoutRate": (Fraction(1, 12), 12),  # D2
}


@pytest.fixture(scope="module")
def results(stored: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> OnlineResults:
    log = stored.store(tmp_path_factory.mktemp("golden"), stored.golden_events())
    every = [metric.name for metric in all_metrics()]
    return karat.evaluate_online(log, every, by=["day", "arm", "device"])


@pytest.fixture(scope="module")
def whole(results: OnlineResults) -> dict[str, OnlineResult]:
    return {row.metric: row for row in results.results if not row.slice}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_metric_of_the_golden_log(whole: dict[str, OnlineResult], name: str) -> None:
    value, n = EXPECTED[name]
    row = whole[name]
    assert row.value == pytest.approx(float(value), abs=1e-12)
    assert (row.n, row.state) == (n, "ok")


def test_every_metric_is_derived_here() -> None:
    others = {"ClickPosition", "ZeroResults(raw)", "GoodAbandonment"}  # below
    assert set(EXPECTED) | others == {metric.name for metric in all_metrics()}


def test_what_is_not_known_has_bounds(whole: dict[str, OnlineResult]) -> None:
    def bounds(name: str) -> tuple[float | None, float | None]:
        return whole[name].least, whole[name].most

    # Nothing says how long C4's answer was open; A3 and D2 were shown none.
    assert whole["GoodAbandonment"].value is None
    assert bounds("GoodAbandonment") == (0.0, pytest.approx(1 / 9))
    # A1, B1 and D1 are satisfied whatever else is not known.
    assert bounds("SAT") == (pytest.approx(3 / 8), pytest.approx(3 / 8))
    # cyn's session is a success by that answer alone.
    assert bounds("SuccessPerSession") == (pytest.approx(4 / 6), pytest.approx(5 / 6))


def test_before_any_fallback_nothing_was_empty(whole: dict[str, OnlineResult]) -> None:
    # A2 served nothing and had 3 matches: 1 of 9 as served, none before the fallback.
    assert whole["ZeroResults(raw)"].value == 0.0


def test_clicks_by_position(results: OnlineResults) -> None:
    # Positions 2, 1, 11 of ada, 1, 4 of bob, 1, 3 of dan, 2 of fay.
    rows = [row for row in results.results if list(row.slice) == ["position"]]
    assert [(row.slice["position"], row.total, row.n) for row in rows] == [
        ("1", 3.0, 8), ("2", 2.0, 8), ("3", 1.0, 8), ("4", 1.0, 8), ("11", 1.0, 8)
    ]  # fmt: skip


def test_the_interval_of_the_click_through_rate(whole: dict[str, OnlineResult]) -> None:
    # ada, bob and dan click in one of two, cyn in none: residuals ¼, ¼, ¼, −¾, squares 3/4;
    # variance 3/4 / (3·4·2²) = 1/64, error ⅛; three degrees of freedom, t = 3.182446.
    row = whole["CTR"]
    assert row.low == 0.0
    assert row.high == pytest.approx(0.375 + 3.182446305284263 / 8)
    assert (row.users, row.total, row.method) == (4, 3.0, "users")


def test_slices_of_the_golden_log(results: OnlineResults) -> None:
    def of(metric: str, name: str) -> dict[str, tuple[float | None, int]]:
        rows = [r for r in results.results if r.metric == metric and list(r.slice) == [name]]
        return {row.slice[name]: (row.value, row.n) for row in rows}

    # In Berlin, D2 and B2 are of the 21st: seen, not clicked.
    assert of("CTR", "day") == {"2026-11-20": (0.5, 6), "2026-11-21": (0.0, 2)}
    # A1, A3, D1 in arm a; B1, B2, D2 in b; C1, C4 in none.
    assert of("CTR", "arm") == {
        "a": (pytest.approx(2 / 3), 3), "b": (pytest.approx(1 / 3), 3), "": (0.0, 2)
    }  # fmt: skip
    # Where nobody bought, it is 0; where nothing is old enough, there is no rate.
    assert of("Conversion", "day") == {
        "2026-11-20": (pytest.approx(1 / 9), 9), "2026-11-21": (None, 0)
    }  # fmt: skip


def test_the_health_of_the_golden_log(results: OnlineResults) -> None:
    said = "\n".join(results.health)
    assert "bots made 2 of" in said  # eve
    assert "1 of 5 users (20 %) were in several arms" in said  # dan
    assert "3 carts could not be attributed to a search" in said  # bob's of d5, and fay's two
    assert "2 days are less than a week" in said
    assert "their purchases may still come" in said


def test_the_report_of_the_golden_log_fits_80_columns(
    results: OnlineResults, tmp_path: Path
) -> None:
    from karat.reports.online.evaluation import show
    from karat.reports.writers.terminal import console

    path = tmp_path / "report.txt"
    with path.open("w", encoding="utf-8") as file:
        show(results, console(file, 80))
    assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 80
