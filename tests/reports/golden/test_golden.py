"""Golden sets for eyes: headings whole, 80 columns, and everything as JSON."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable

import polars as pl
from rich.console import Console

from karat.golden.composition import composition
from karat.golden.editions import difference, edition
from karat.golden.freshness import Stale
from karat.golden.planning import plan
from karat.golden.sampling import choose
from karat.golden.traffic import clean, with_bands
from karat.reports.golden import golden as reports
from karat.tables import Pairs

QUERIES = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["a", "b"], "lang": ["en", None]})
GRADES = {"query_id": ["q1", "q2"], "doc_id": ["d", "d"], "votes": [2, 2], "rule": ["m", "m"]}


def shown(show: Callable[[Console], None]) -> str:
    """What is printed, 80 columns wide."""
    stream = io.StringIO()
    show(Console(file=stream, width=80))
    assert max(map(len, stream.getvalue().splitlines())) <= 80
    return stream.getvalue()


def graded(*grades: float) -> pl.DataFrame:
    """Grades as an edition has them."""
    raters = pl.Series("raters", [["ann"], ["ann"]])
    return pl.DataFrame(GRADES).with_columns(raters, grade=pl.Series(list(grades)))


def test_a_heading_is_not_broken_where_its_table_ends() -> None:
    found = plan(0.05, sd=0.2, depth=15, raters=2, seconds=15, per_hour=30.0)
    text = shown(lambda out: reports.show_plan(found, out))
    assert "What a golden set detects (power 80 %, sd 0.2)\n" in text
    assert "Price" in text


def test_what_changed_is_said_without_a_column_of_nothing() -> None:
    old, new = (
        edition(QUERIES, graded(*grades), {"scale": [0, 3]})[0]
        for grades in ((0.0, 1.0), (0.0, 3.0))
    )
    text = shown(lambda out: reports.show_diff(difference(old, new), out))
    assert "class" not in text
    assert [line.split() for line in text.splitlines() if line.split()[-1:] == ["1"]] == [
        ["0", "0", "1", "1"],  # added, removed, changed, same
        ["1", "3", "1"],  # old, new, pairs
    ]
    by = shown(lambda out: reports.show_diff(difference(old, new, by="lang"), out, "lang"))
    assert by.splitlines()[2].split() == ["lang", "Added", "Removed", "Changed", "Same"]
    assert "class" not in by
    same = shown(lambda out: reports.show_diff(difference(old, old), out))
    assert same.startswith("nothing changed")


def test_what_no_set_can_show_is_said_without_figures() -> None:
    for found in (plan(1e-6, per_hour=30.0), plan(1e-12, per_hour=30.0)):
        text = shown(functools.partial(reports.show_plan, found))
        assert "takes more than a million queries" in " ".join(text.split())
        assert "hours of rating" not in text
    # Nagata, as in test_planning: (1.95996 + .84162)^2 x (.2 / .0006)^2 = 872,098: still told.
    assert "872,098" in shown(lambda out: reports.show_plan(plan(0.0006), out))


def test_columns_that_became_no_attribute_are_named() -> None:
    rows = {"text": ["a", "b"], "count": [2, 1], "user_agent": ["x", "y"], "date": ["1", "2"]}
    log = clean(pl.DataFrame(rows))
    sample = choose(with_bands(log.frame), 2, salt="s")
    made_of = composition(sample.queries)
    text = " ".join(shown(lambda out: reports.show_chosen(log, sample, made_of, out)).split())
    assert "columns left out, as they describe searches, not queries: user_agent, date" in text


def test_stale_judgments_are_told_by_text_and_what_is_not_shown_is_counted() -> None:
    rows = {
        "judgment": range(12),
        "query_id": [f"q{n}" for n in range(12)],
        "text": ["stiff door", None, *["wall"] * 10],
        "doc_id": ["d"] * 12,
        "rater": ["ann"] * 12,
        "grade": [3.0] * 12,
        "time_us": [1] * 12,
        "change": ["changed"] * 12,
    }
    found = Stale(pl.DataFrame(rows), checked=1400, unknown=0)
    text = shown(lambda out: reports.show_stale(found, out))
    assert "12 of 1,400 judgments" in text
    assert "stiff door" in text
    assert "q0" not in text
    assert "q1" in text  # that has no text
    assert "and 2 more (--format json)" in text
    assert "karat golden queue" in text


def test_what_to_do_next_fits_and_keeps_its_commands_whole() -> None:
    todo = [
        ("1,234 disagreements to put before an adjudicator", "karat golden disagreements --queue"),
        ("freeze what is judged", "karat golden freeze NAME"),
    ]
    lines = shown(lambda out: reports.show_todo(todo, out)).splitlines()
    assert lines[1:] == [
        "  1,234 disagreements to put before an adjudicator:",
        "    karat golden disagreements --queue",
        "  freeze what is judged: karat golden freeze NAME",
    ]


def test_what_it_is_made_of() -> None:
    text = shown(lambda out: reports.show_made_of(composition(QUERIES), out))
    assert "2 queries, made of\n" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(" lang")]
    assert [row[1] for row in rows] == ["en", "–"]
    assert "weight" not in text


def test_long_lists_are_cut_and_strangers_command_nothing() -> None:
    rows = {
        "text": ["\x1b[2J door", *["wall"] * 11],
        "query_id": ["q"] * 12,
        "doc_id": [f"d{n}" for n in range(12)],
        "grades": [[3.0, 0.0]] * 12,
        "between": ["raters"] * 12,
        "imported": pl.Series([None] * 12, dtype=pl.Float64),
    }
    frame = pl.DataFrame(rows)
    text = shown(lambda out: reports.show_disagreements(frame, 12, out))
    assert "\x1b" not in text
    assert "0 3" in text
    assert "and 2 more (--format json)" in text
    assert "karat judge --terminal --adjudicate" in " ".join(text.split())
    none = shown(lambda out: reports.show_disagreements(frame.clear(), 0, out))
    assert none == "no disagreements to adjudicate\n"


def test_everything_is_json() -> None:
    pairs = Pairs(pl.DataFrame({"query_id": ["q"], "doc_id": ["d"]}))
    found = {"pairs": pairs, "made": composition(QUERIES), 3: (1.5, None)}
    told = json.loads(reports.to_json(found, without=("made.warnings",)))
    assert told["pairs"] == [{"query_id": "q", "doc_id": "d"}]
    assert told["3"] == [1.5, None]
    assert told["made"]["queries"] == 2
    assert "warnings" not in told["made"]


def test_what_raters_contradict_stands_apart() -> None:
    rows = {
        "text": ["door", "wall"],
        "query_id": ["q1", "q2"],
        "doc_id": ["d1", "d2"],
        "grades": [[3.0, 0.0], [2.0, 3.0]],
        "between": ["raters", "import"],
        "imported": [None, 0.0],
    }
    frame = pl.DataFrame(rows)
    text = shown(lambda out: reports.show_disagreements(frame, 0, out))
    first, second = text.split("1 imported grade contradicted by raters\n")
    assert "1 disagreement\n" in first
    assert "wall" not in first
    cells = [line.split() for line in second.splitlines()]
    assert ["wall", "d2", "2", "3", "0"] in cells
    assert "--queue-imported" in second
    alone = shown(lambda out: reports.show_disagreements(frame.tail(1), 0, out))
    assert alone.startswith("no disagreements to adjudicate\n")


def test_what_a_log_held_is_counted_in_units_that_are_said() -> None:
    log = pl.DataFrame(
        {
            "text": ["foo", "Foo", "foo", " ", "bar", "a@b.example", "x"],
            "device": ["app", "app", "web", "app", "web", "web", "web"],
            "is_bot": ["no", "no", "no", "no", "no", "no", "yes"],
            "count": [1, 1, 1, 1, 2, 1, 1],
        }
    )
    cleaned = clean(log)
    sample = choose(with_bands(cleaned.frame), 3, salt="s")
    made_of = composition(sample.queries)
    text = shown(lambda out: reports.show_chosen(cleaned, sample, made_of, out))
    flat = " ".join(text.split())
    assert (
        "of the log: 1 empty search, 1 search of bots, 1 spelling merged with another, "
        "1 query with email (--mask replaces it)"
    ) in flat
    # foo was searched twice with the app and once on the web; bar and the third query on the web.
    assert "device differs between searches of one query for 1 of 3 queries: each query has" in flat
