"""What every entry promises of itself: a worked example, names that are read back, no gaps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from karat.measures import Entry, entries, parse
from karat.measures.diversity import Covered

ENTRIES = {entry.symbol: entry for entry in entries()}


@pytest.fixture(params=list(ENTRIES))
def entry(request: pytest.FixtureRequest) -> Entry:
    return ENTRIES[request.param]


def test_the_example_comes_out_to_four_digits(entry: Entry, value_of: Callable[..., float]) -> None:
    example = entry.example
    assert example is not None, f"{entry.symbol} has no worked example"
    assert example.arithmetic
    told = {"covers": example.covers, "lost": example.lost} if isinstance(example, Covered) else {}
    got = value_of(example.measure, example.retrieved, example.missed, **told)
    assert round(got, 4) == example.value


def test_the_example_is_of_this_measure(entry: Entry) -> None:
    assert entry.example is not None
    assert parse(entry.example.measure).entry is entry


def test_the_example_lies_in_the_range(entry: Entry) -> None:
    assert entry.example is not None
    assert entry.low <= entry.example.value
    assert entry.high is None or entry.example.value <= entry.high


def test_everything_is_said(entry: Entry) -> None:
    for said in (entry.title, entry.formula, entry.says, entry.source, entry.undefined):
        assert said.strip()
        assert said == said.strip()
    for parameter in entry.parameters:
        assert parameter.meaning
        assert parameter.name == parameter.name.casefold()
    assert entry.function.__doc__


def test_the_printed_name_is_read_back(entry: Entry) -> None:
    assert entry.example is not None
    measure = parse(entry.example.measure)
    assert str(parse(str(measure))) == str(measure)
    assert parse(str(measure)) == measure
    assert len({measure, parse(str(measure).swapcase())}) == 1


def test_every_alias_and_trec_name_is_this_measure(entry: Entry) -> None:
    assert entry.example is not None
    _, at, cutoff = entry.example.measure.partition("@")
    for alias in entry.aliases:
        if not entry.parameters or entry.symbol != "Ceiling":
            assert parse(alias + at + cutoff).entry is entry
            assert parse((alias + at + cutoff).upper()).entry is entry
    if entry.trec is not None:
        assert parse(entry.trec).entry is entry
        assert parse(entry.trec).cutoff is None
    if entry.trec_at is not None:
        name = entry.trec_at.format(k=entry.trec_cutoffs[0])
        assert parse(name).entry is entry
        assert parse(name).cutoff == entry.trec_cutoffs[0]


def test_no_name_is_read_as_two_measures() -> None:
    taken: dict[str, str] = {}
    for entry in entries():
        families = [entry.trec_at.removesuffix("_{k}")] if entry.trec_at else []
        for name in {n.casefold() for n in (entry.symbol, *entry.aliases, entry.trec or "")}:
            assert taken.setdefault(name, entry.symbol) == entry.symbol or not name
        for name in families:
            assert taken.setdefault(name.casefold(), entry.symbol) == entry.symbol
