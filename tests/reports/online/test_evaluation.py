"""Online results for eyes and machines: units, dashes with their reasons, and 80 columns."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from typing import Any

import pytest
from tests.choosing import deep_but

from karat.online.metrics import registry
from karat.online.metrics.registry import all_metrics, find
from karat.reports.online import catalogue, evaluation
from karat.reports.writers.plain import to_json
from karat.reports.writers.terminal import console
from karat.tables.online.evaluation import OnlineResult, OnlineResults


def row(metric: str, value: float | None = None, **more: Any) -> OnlineResult:
    usual: dict[str, Any] = {
        "slice": {}, "low": None, "high": None, "method": None, "least": None, "most": None,
        "n": 1200, "users": 300, "total": None, "state": "ok" if value is not None else "none",
        "reason": "",
    }  # fmt: skip
    return OnlineResult(metric=metric, version=1, value=value, **{**usual, **more})


def users(low: float, high: float) -> dict[str, Any]:
    return {"low": low, "high": high, "method": "users"}


DAYS = ("2026-11-01", "2026-11-02")
ROWS = [
    row("CTR", 0.4213, **users(0.4011, 0.4416)),
    row("GoodAbandonment", least=0.0, most=0.1234, state="unknown",
        reason="the log does not determine it: only bounds are known"),
    row("SAT", 0.3, **users(0.28, 0.32), least=0.22, most=0.3),
    row("Dwell", 41.25, low=33.0, method="buckets",
        reason="no upper end: many draws of the users do not reach it"),
    row("Conversion", state="unknown", n=0, users=0, reason="the log has no purchases"),
    row("Latency(p95)", 1234.4, low=1100.0, high=1400.0, method="buckets"),
    row("ErrorRate", 0.0, reason="all users are alike"),
    row("CTR", 0.4, slice={"day": DAYS[0]}, **users(0.35, 0.45), n=500),
    row("Conversion", slice={"day": DAYS[0]}, state="unknown", n=0,
        reason="the log has no purchases"),
    row("Dwell", slice={"day": DAYS[0]}, state="unknown",
        reason="more than half are censored (60 % of 5): it is not reached"),
    row("CTR", slice={"day": DAYS[1]}, reason="no searches with results seen", n=0, users=0),
    row("Conversion", slice={"day": DAYS[1]}, state="unknown", n=0,
        reason="the log has no purchases"),
    row("Dwell", 12.0, slice={"day": DAYS[1]}, low=9.0, high=30.0, method="buckets", n=90),
]  # fmt: skip


def results(rows: list[OnlineResult], **more: Any) -> OnlineResults:
    usual: dict[str, Any] = {
        "by": ("day",), "rules": "rules@1 idle=20min", "period": DAYS, "events": 9876,
        "health": ["2 days are less than a week: weekdays and weekends differ"],
        "notes": ["something to note"], "simulated": False,
    }  # fmt: skip
    return OnlineResults(results=rows, **{**usual, **more})


def shown(
    found: OnlineResults, width: int = 80, *, full: bool = True, all_notes: bool = True
) -> list[str]:
    out = io.StringIO()
    evaluation.show(found, console(out, width), full=full, all_notes=all_notes)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert all(len(line) <= width for line in lines)
    return lines


def test_the_table_at_80_columns() -> None:
    assert (
        shown(results(ROWS))
        == """\
Quality of the log
· 2 days are less than a week: weekdays and weekends differ

users, 2026-11-01 to 2026-11-02, 9,876 events

 Metric              Value            95 %      Could be      n  Users
 ─────────────────────────────────────────────────────────────────────
 CTR                42.1 %    40.1 to 44.2                1,200    300

 GoodAbandonment         –                   0.0 to 12.3  1,200    300

 SAT                30.0 %    28.0 to 32.0  22.0 to 30.0  1,200    300
 Dwell              41.2 s    33.0 or more                1,200    300

 Conversion              –                                    0      0

 Latency(p95)     1,234 ms  1,100 to 1,400                1,200    300
 ErrorRate           0.0 %                                1,200    300

By day

 day             n              CTR %           Dwell s
 ──────────────────────────────────────────────────────
 2026-11-01  1,200  40.0 35.0 to 45.0                 –
 2026-11-02     90                  –  12.0 9.0 to 30.0

· with overridden rules: idle=20min
· GoodAbandonment: –: the log does not determine it: only bounds are known
· Conversion: –: the log has no purchases
· Dwell: 95 %: no upper end: many draws of the users do not reach it
· ErrorRate: no interval: all users are alike
· Dwell in 1 slice: –: more than half are censored: it is not reached
· CTR in 1 slice: –: no searches with results seen
· something to note""".splitlines()
    )
    # The rules, and the two values that are missing, matter most.
    assert shown(results(ROWS), all_notes=False)[-4:] == [
        "· with overridden rules: idle=20min",
        "· GoodAbandonment: –: the log does not determine it: only bounds are known",
        "· Conversion: –: the log has no purchases",
        "5 more notes: --notes",
    ]


def test_null_is_a_dash_and_zero_is_zero() -> None:
    lines = shown(results([row("CTR", 0.0, reason="all users are alike"),
                           row("SAT", reason="no searches with results seen", n=0)]))  # fmt: skip
    assert any(line.split()[:3] == ["CTR", "0.0", "%"] for line in lines)
    assert any(line.split()[:2] == ["SAT", "–"] for line in lines)
    assert "· SAT: –: no searches with results seen" in lines


def test_simulated_users_stand_in_the_heading() -> None:
    assert "simulated users, 2026-11-01 to 2026-11-02, 9,876 events" in shown(
        results(ROWS, simulated=True)
    )
    assert "users, no days, 1 event" in shown(results(ROWS, period=None, events=1))


def test_where_clicks_fall_is_a_table_of_its_own() -> None:
    rows = [
        row("ClickPosition", count / 100, slice={"position": str(place)}, n=100, total=float(count))
        for place, count in ((1, 60), (2, 25), (11, 10), (20, 5))
    ]
    lines = shown(results([row("CTR", 0.5), *rows]))
    at = lines.index("Clicks by position")
    assert [line.split() for line in lines[at + 4 : at + 7]] == [
        ["1", "60", "60.0", "%"],
        ["2", "25", "25.0", "%"],
        ["11+", "15", "15.0", "%"],
    ]
    assert not any(line.startswith("· ClickPosition") for line in lines)


@pytest.mark.parametrize("width", deep_but([40, 80], [40, 60, 80, 200]))
def test_every_metric_and_long_slices_fit(width: int) -> None:
    every = [
        row(m.name, 0.5, **users(0.25, 0.75)) for m in all_metrics() if m.name != "ClickPosition"
    ]
    sliced = [
        row(each.metric, 0.5, slice={"query": "a very long query " * 5, "arm": arm}, **users(0, 1))
        for arm in "ab"
        for each in every
    ]
    lines = shown(results([*every, *sliced], by=("query,arm",)), width)
    heads = "".join("".join(lines).split())
    for metric in all_metrics():
        if metric.name != "ClickPosition" and width >= 60:
            assert metric.name.split("(")[0] in heads, metric.name


def figures(lines: list[str]) -> Counter[str]:
    """The numbers in the bodies of tables, a word each."""
    found: Counter[str] = Counter()
    body = False
    for line in lines:
        body = bool(line) and (body or line.startswith(" ──"))
        found.update(word for word in line.split() if body and word.strip("−")[:1].isdigit())
    return found


@pytest.mark.parametrize(
    ("name", "step"), [("{}", 3), ("a {} of a very long name with many words", 9)]
)
@pytest.mark.parametrize(
    "by", [("device",), pytest.param(("device", "arm"), marks=pytest.mark.deep)]
)
def test_no_width_cuts_a_number_of_a_slice(
    by: tuple[str, ...], name: str, step: int, *, deep: bool
) -> None:
    rows = []
    metrics = ("CTR", "SAT", "Reformulation", "Dwell", "MRCR", "TimeToFirstClick",
               "SuccessPerSession", "Latency(p95)", "RevenuePerSearch")  # fmt: skip
    for place, metric in enumerate(map(find, metrics)):
        for part, share in (("desktop", 0.8765), ("phone", 0.0123)):
            value = share if metric.unit == "share" else 1234.5 * share
            ends = [
                users(0.9 * value, 1.2 * value),  # lopsided
                {**users(0.95 * value, 1.05 * value), "least": 0.5 * value, "most": value, "n": 77},
                users(0.93 * value, 1.07 * value),
            ][place % 3]
            rows.append(row(metric.name, value, slice=dict.fromkeys(by, name.format(part)), **ends))
    rows += [
        row("ClickPosition", 0.1 / place, slice={**dict.fromkeys(by, name.format(part)),
            "position": str(place)}, n=8_765, total=8_765 * 0.1 / place)
        for part in ("desktop", "phone")
        for place in range(1, 11)
    ]  # fmt: skip
    found = results(rows, by=(",".join(by),))
    sizes = {"1,200", "77", "8,765"}  # one for each table
    whole = figures(shown(found, 10_000))
    for each in json.loads(to_json(found))["results"]:
        assert evaluation.figure(find(each["metric"]), each["value"]).split()[0] in whole
    for width in range(40, 161, step if deep else 5 * step):
        narrow = figures(shown(found, width))
        lost = {word: (whole[word], narrow[word]) for word in {*whole, *narrow} - sizes
                if whole[word] != narrow[word]}  # fmt: skip
        assert not lost, (width, lost)


@pytest.mark.parametrize("width", deep_but([30, 41, 52, 63, 74], range(30, 80)))
def test_no_width_cuts_a_value_of_all(width: int) -> None:
    numbers = {
        word for word in figures(shown(results(ROWS[:7]), 200)) if word not in {"1,200", "300"}
    }
    assert numbers <= set(figures(shown(results(ROWS[:7]), width)))


def test_numbers_wider_than_any_screen_are_printed_even_so() -> None:
    out = io.StringIO()
    evaluation.show(results([row("CTR", 0.5, slice={"day": DAYS[0]}, n=10**12)]), console(out, 20))
    assert f"{10**12:,}" in out.getvalue()
    assert "50.0" in out.getvalue()


def test_of_many_slices_the_latest_or_largest_are_shown() -> None:
    days = results([row("CTR", 0.5, slice={"day": f"{place:04}"}) for place in range(35)])
    lines = shown(days, full=False)
    assert "By day: the latest 7 of 35 (all: --full)" in lines
    text = "\n".join(lines)
    assert "0034" in text
    assert "0028" in text
    assert "0027" not in text
    assert "0000" in "\n".join(shown(days))
    queries = results(
        [row("CTR", 0.5, slice={"query": f"q{place:03}"}, n=place + 1) for place in range(100)],
        by=("query",),
    )
    text = "\n".join(shown(queries, full=False))
    assert text.index("q099") < text.index("q093")
    assert "q092" not in text
    page = evaluation.to_markdown(queries)
    assert "By query: the largest 60 of 100\n" in page
    assert "q040" in page
    assert "q039" not in page
    # A day is not cut: three arms of the last two days are six, so a third day is needed.
    arms = [
        row("CTR", 0.5, slice={"day": f"{at // 3:04}", "arm": "abc"[at % 3]}) for at in range(30)
    ]
    lines = shown(results(arms, by=("day,arm",)), full=False)
    assert "By day,arm: the latest 9 of 30 (all: --full)" in lines
    # Hours stay in their order.
    hours = [row("CTR", 0.5, slice={"hour": f"{at:02}"}, n=1 + at % 12) for at in range(24)]
    lines = shown(results(hours, by=("hour",)), full=False)
    found = [line.split()[0] for line in lines if line.strip()[:2].isdigit()]
    assert found == ["08", "09", "10", "11", "21", "22", "23"]


def test_a_month_by_day_and_arm_is_a_screen() -> None:
    names = [m.name for m in all_metrics() if m.name in registry.DEFAULT]
    days = [f"2026-10-{day:02}" for day in range(1, 32)]
    slices = [{}, *({"day": day} for day in days), {"arm": "a"}, {"arm": "b"}]
    rows = [
        row(name, 0.6327, slice=part, **users(0.6123, 0.6534),
            **({"least": 0.51, "most": 0.6327} if name == "SAT" else {}))
        for part in slices for name in names
    ]  # fmt: skip
    found = results(rows, by=("day", "arm"))
    lines = shown(found, full=False)
    assert len(lines) <= 45
    text = "\n".join(lines)
    assert "By day: the latest 7 of 31, 10 further metrics (all: --full)" in text
    assert "By arm: 10 further metrics (all: --full)" in text
    heads = [line.split() for line in lines if line.split()[:1] == ["day"]]
    assert heads == [["day", "n", "CTR", "%", "ZeroResults", "%", "Reformulation", "%"]]
    assert "63.3 61.2 to 65.3" in text
    assert not any(sign in text for sign in "±[]")
    # Metrics that were asked for are all there, of the slices that are shown.
    out = io.StringIO()
    evaluation.show(found, console(out, 80), every_metric=True)
    text = out.getvalue()
    assert "By arm\n" in text
    assert all(text.count(name) >= 3 for name in names)  # of all, by day, by arm
    assert days[0] not in text.partition("By day")[2]


def test_few_slices_are_columns_where_metrics_have_no_room() -> None:
    names = ("CTR", "ZeroResults", "Reformulation", "SAT", "Dwell", "SuccessPerSession")
    rows = [
        row(name, 0.3, slice={"arm": arm}, **users(0.2, 0.4), **more)
        for arm in ("a", "")
        for name in names
        for more in [{"least": 0.1, "most": 0.3} if name == "SAT" else {}]
    ]
    lines = [line.split() for line in shown(results(rows, by=("arm",)))]
    at = lines.index(["By", "arm"])
    assert lines[at + 2 : at + 10] == [
        ["Metric", "a", "(not", "logged)"],
        ["─" * len("".join(lines[at + 3]))],
        ["n", "1,200", "1,200"],
        ["CTR", "%", "30.0", "20.0", "to", "40.0", "30.0", "20.0", "to", "40.0"],
        ["ZeroResults", "%", "30.0", "20.0", "to", "40.0", "30.0", "20.0", "to", "40.0"],
        ["Reformulation", "%", "30.0", "20.0", "to", "40.0", "30.0", "20.0", "to", "40.0"],
        ["SAT", "%", "30.0", "20.0", "to", "40.0", "30.0", "20.0", "to", "40.0"],
        ["could", "be", "10.0", "to", "30.0", "10.0", "to", "30.0"],
    ]


def test_what_is_not_logged_is_said() -> None:
    lines = shown(results([row("CTR", 0.5, slice={"device": ""})], by=("device",)))
    assert any(line.strip().startswith("(not logged)") for line in lines)


def test_slices_have_one_notation_from_low_to_high() -> None:
    rows = [
        row("CTR", 1 / 3, slice={"arm": "a"}, **users(0.0, 1.0)),
        row("SAT", 0.3, slice={"arm": "a"}, **users(0.28, 0.32), least=0.22, most=0.3),
        row("RevenuePerSearch", -1.5, slice={"arm": "a"}, **users(-2.0, -1.0)),
        row("GoodAbandonment", slice={"arm": "a"}, least=0.0, most=0.1234, state="unknown",
            reason="the log does not determine it"),
        row("Dwell", 12.0, slice={"arm": "a"}, low=9.0, method="buckets"),
    ]  # fmt: skip
    lines = shown(results(rows, by=("arm",)), 150)
    at = lines.index("By arm")
    head, cells = (" ".join(lines[at + place].split()) for place in (2, 4))
    assert head == (
        "arm n CTR % SAT % SAT could be RevenuePerSearch GoodAbandonment % GoodAbandonment could "
        "be Dwell s"
    )
    assert cells == (
        "a 1,200 33.3 0.0 to 100.0 30.0 28.0 to 32.0 22.0 to 30.0 −1.50 −2.00 to −1.00 – 0.0 to "
        "12.3 12.0 9.0 or more"
    )


def test_n_of_a_slice_is_the_most_that_a_metric_counts_over() -> None:
    rows = [row("CTR", 0.5, slice={"arm": "a"}), row("ErrorRate", 0.5, slice={"arm": "a"}, n=1_300)]
    lines = shown(results(rows, by=("arm",)))
    assert any(line.split()[:3] == ["arm", "n", "CTR"] for line in lines)
    assert any(line.split()[:2] == ["a", "1,300"] for line in lines)


def test_where_clicks_fall_is_sliced_too() -> None:
    def at(arm: str, place: int, count: int) -> OnlineResult:
        there = {"arm": arm, "position": str(place)}
        return row("ClickPosition", count / 20, slice=there, n=20, total=float(count))

    rows = [at("a", 1, 15), at("a", 12, 5), at("", 3, 20)]
    lines = shown(results(rows, by=("arm",)))
    found = [line.split() for line in lines[lines.index("Clicks by position, by arm") + 2 :]]
    assert found[0] == ["arm", "Clicks", "1", "%", "3", "%", "11+", "%"]
    assert found[2] == ["a", "20", "75.0", "0.0", "25.0"]
    assert found[3] == ["(not", "logged)", "20", "0.0", "100.0", "0.0"]


def test_alone_where_clicks_fall_has_the_heading() -> None:
    rows = [row("ClickPosition", 1.0, slice={"position": "1"}, n=9, total=9.0)]
    lines = shown(results(rows, by=()))
    assert "Clicks by position: users, 2026-11-01 to 2026-11-02, 9,876 events" in lines
    assert not any(line.split()[:1] == ["Metric"] for line in lines)  # no empty table


def test_a_heading_is_as_wide_as_the_screen_and_not_as_its_table() -> None:
    lines = shown(results([row("CTR", 0.5)], events=12_345_678))
    assert "users, 2026-11-01 to 2026-11-02, 12,345,678 events" in lines


def test_text_from_strangers_commands_no_terminal() -> None:
    evil = "\x1b[31m[red]boo[/red]"
    text = "\n".join(shown(results([row("CTR", 0.5, slice={"query": evil})], by=("query",))))
    assert "\x1b" not in text
    assert "[red]boo[/red]" in text


def test_json_has_everything() -> None:
    found = json.loads(to_json(results(ROWS)))
    assert list(found) == [
        "results", "by", "rules", "period", "events", "health", "notes", "simulated", "engine"
    ]  # fmt: skip
    assert found["results"][4]["value"] is None
    assert found["results"][4]["state"] == "unknown"
    assert found["results"][7]["slice"] == {"day": "2026-11-01"}


def test_csv_has_a_column_for_each_dimension() -> None:
    rows = list(csv.DictReader(io.StringIO(evaluation.to_csv(results(ROWS)))))
    assert len(rows) == len(ROWS)
    assert rows[0]["slice_day"] == ""
    assert rows[7]["slice_day"] == "2026-11-01"
    assert (rows[4]["value"], rows[6]["value"]) == ("", "0.0")  # null is not zero
    evil = evaluation.to_csv(results([row("CTR", 0.5, slice={"query": "=cmd()"})]))
    assert next(csv.DictReader(io.StringIO(evil)))["slice_query"] == "'=cmd()"


def test_markdown_is_the_same_in_rows() -> None:
    text = evaluation.to_markdown(results([*ROWS, row("CTR", 0.5, slice={"day": "a|b"})]))
    assert text.startswith("- 2 days are less than a week")
    assert "| CTR | 42.1 % | 40.1 to 44.2 |  | 1,200 | 300 |" in text
    assert "| 2026-11-02 | 90 | – | 12.0 9.0 to 30.0 |" in text
    assert "| a&#124;b |" in text
    assert "- Conversion: –: the log has no purchases" in text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("CTR", 0.4213, "42.1 %"),
        ("ErrorRate", 0.00042, "0.04 %"),
        ("ErrorRate", 0.0, "0.0 %"),
        ("Dwell", 4.256, "4.26 s"),
        ("Dwell", 1234.5, "1,234.5 s"),
        ("Latency(p50)", 4.26, "4.3 ms"),
        ("Latency(p50)", 1234.5, "1,234 ms"),
        ("MRCR", 0.43219, "0.432"),
        ("SessionsPerUser", 2.5, "2.500"),
        ("RevenuePerSearch", 1234.5, "1,234.50"),
        ("RevenuePerSearch", -0.5, "−0.50"),
        ("CTR", None, "–"),
    ],
)
def test_figures_have_their_unit(name: str, value: float | None, text: str) -> None:
    assert evaluation.figure(find(name), value) == text


def test_a_slice_in_words() -> None:
    assert evaluation.slice_text(row("CTR", 0.5)) == "all"
    assert evaluation.slice_text(row("CTR", 0.5, slice={"day": "d", "arm": ""})) == (
        "day d, arm (not logged)"
    )
    assert evaluation.slice_text(row("CTR", 0.5, slice={"class": ""})) == (
        "class (not among the queries)"
    )


def test_the_catalogue_has_every_metric() -> None:
    out = io.StringIO()
    catalogue.show_entries(all_metrics(), console(out, 80))
    assert all(metric.name in out.getvalue() for metric in all_metrics())
    assert max(map(len, out.getvalue().splitlines())) <= 80
    page = catalogue.markdown(all_metrics())
    for metric in all_metrics():
        assert f"### {metric.name}: {metric.title}\n" in page
        assert all(f"- Caution: {trap}" in page for trap in metric.traps)
        assert len(set(metric.traps)) == len(metric.traps), metric.name  # none is said twice
        assert catalogue.as_json(metric)["needs"] == [n.split("|") for n in metric.needs]


def test_one_metric_is_explained() -> None:
    out = io.StringIO()
    catalogue.show_entry(find("SAT"), console(out, 80))
    text = out.getvalue()
    assert text.startswith("SAT: satisfied-click rate\nHow often")
    assert "bounds of what the log does not determine" in " ".join(text.split())
    assert "click; impression or returned or hits" in text
