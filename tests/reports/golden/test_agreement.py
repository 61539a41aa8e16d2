"""Agreement for eyes: 80 columns whoever the raters are, and the documented JSON."""

from __future__ import annotations

import io
import json

import polars as pl
from rich.console import Console

from karat.golden.reliability import agreement
from karat.reports.golden.agreement import show
from karat.reports.writers.plain import to_json
from karat.tables.golden.agreement import Agreement
from karat.tables.judgments import Judgments


def agreed(*raters: str) -> Agreement:
    """Each rater grades two documents of 12 queries; one is a grade above at times."""
    rows = [
        (f"q{query}", f"d{doc}", float((query + doc + (query % 3 == place)) % 4), rater)
        for place, rater in enumerate(raters)
        for query in range(12)
        for doc in range(2)
    ]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "grade", "rater"], orient="row")
    frame = frame.with_row_index("judgment").with_columns(
        state=pl.lit("graded"), source=pl.lit("human"), kind=pl.lit("rating"), time_us=pl.lit(1)
    )
    classes = {f"q{query}": "long" if query % 2 else "short" for query in range(12)}
    return agreement(Judgments(frame, (0.0, 3.0)), by=classes)


def shown(found: Agreement, by: str | None = None) -> str:
    """What is printed, 80 columns wide."""
    stream = io.StringIO()
    show(found, Console(file=stream, width=80), by)
    assert max(map(len, stream.getvalue().splitlines())) <= 80
    return stream.getvalue()


def test_two_raters() -> None:
    found = agreed("ann", "ben")
    text = shown(found, "length")
    assert " ".join(text.split()).startswith(found.sentence)
    assert "\nann (rows) and ben (columns)\n" in text
    for heading in ("By length", "Each rater against the others", "Rater", "Self κ"):
        assert heading in text
    counts = [line.split()[1:] for line in text.splitlines() if line.split()[:1] == ["3"]]
    of_three = found.confusion.counts[3]
    assert [f"{count}" if count else "·" for count in of_three] in counts


def test_names_as_long_as_an_address() -> None:
    text = shown(agreed("alexandra.longname@department.example.com", "ben", "cy"))
    assert "alexandra" in text
    assert "mean κ of 3 raters" in text
    assert "By pair of raters" in text


def test_nothing_was_judged_twice() -> None:
    text = shown(agreed("ann"))
    assert text == "agreement not available: nothing was graded by two raters\n"


def test_as_json() -> None:
    found = agreed("ann", "ben")
    told = json.loads(to_json(found))
    assert told["sentence"] == found.sentence
    assert told["raters"] == ["ann", "ben"]
    assert told["headline"]["value"] == found.headline.value
