"""Evaluation on one part of a golden set, and the uses of the held-out part."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.errors import InputError, UsageError
from karat.formats.own import held_out
from karat.formats.own.held_out import place
from karat.tables.notes import Concern, Note
from karat.workflows.offline.parts import split_file, uses_of, within

RUN = karat.Run.from_dict({f"q{n}": {"a": 1.0} for n in range(1, 9)}, "bm25")
OTHER = karat.Run.from_dict({f"q{n}": {"b": 1.0} for n in range(1, 9)}, "other")

BARE = karat.Queries(pl.DataFrame({"query_id": ["q1"], "lang": ["en"]}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Eight queries: document a is right for the first six, and b for the others."""
    golden = karat.GoldenSet("docs", scale=(0, 3))
    for n in range(1, 9):
        golden.add(f"text {n}", {"a" if n < 7 else "b": 2})
    made = golden.split()
    assert [query for query, part in made.parts.items() if part == "held_out"] == ["q2", "q4", "q5"]
    golden.save(tmp_path / "g.json")
    return tmp_path / "g.json"


def test_a_part_is_measured_alone_on_the_scale_of_all(path: Path) -> None:
    dev = karat.evaluate(path, RUN, ["P@1"], part="dev")
    assert (dev.results[0].value, dev.results[0].n) == (3 / 5, 5)  # q7 and q8 are wrong
    assert not any("held-out" in note for note in dev.notes)
    assert not place(path).exists()
    both = karat.evaluate(path, RUN, ["P@1"], by="part")
    assert {row.slice: row.value for row in both.slices} == {"dev": 0.6, "held_out": 1.0}
    assert any("the 3 held-out queries are counted with the others" in n for n in both.notes)
    assert within("dev", path, [RUN]).qrels.scale == (0, 3)


def test_each_use_of_the_held_out_part_is_recorded_and_counted(path: Path) -> None:
    first = karat.evaluate(path, RUN, ["P@1"], part="held_out")
    assert (first.results[0].value, first.results[0].n) == (1.0, 3)
    name = "g.json.held_out.jsonl"
    assert first.notes[0] == f"held-out part: use 1 (no run before; {name})"
    again = karat.evaluate(karat.GoldenSet.load(path), RUN.named("same"), ["P@1"], part="held_out")
    assert again.notes[0] == f"held-out part: use 2 (1 run before; {name})"
    compared = karat.compare(path, RUN, OTHER, ["P@1"], part="held_out")
    # Two uses before, of one content under two names.
    assert compared.notes[0] == f"held-out part: use 3 (1 run before; {name})"
    policy = {"rule": [{"measure": "P@1", "min": 0.5}]}
    held = karat.gate(policy, path, None, OTHER, part="held_out")
    assert held.notes[0] == f"held-out part: use 4 (2 runs before; {name})"
    assert held.verdict != "pass"
    found = uses_of(path)
    assert [[run for run, _ in use.runs] for use in found] == [
        ["bm25"],
        ["same"],
        ["bm25", "other"],
        ["other"],
    ]
    assert found[0].runs[0][1] == found[1].runs[0][1] != found[3].runs[0][1]
    assert {(use.golden, use.queries) for use in found} == {("g.json", 3)}


def test_a_benchmark_is_one_use(path: Path) -> None:
    results = karat.benchmark(path, lambda _: ["a"], ["P@1"], part="held_out")
    assert results.results[0].n == 3
    assert results.notes[0].startswith("held-out part: use 1 (no run before")
    assert len(uses_of(path)) == 1


def test_what_cannot_be_recorded_is_said_or_not_shown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = karat.GoldenSet()
    for n in range(9):
        golden.add(f"text {n}", ["a"])
    golden.split()
    notes = karat.evaluate(golden, RUN, ["P@1"], part="held_out").notes
    assert "this use is not recorded" in notes[0]

    def full(*_: object) -> None:
        raise InputError("cannot be written: No space left on device")

    monkeypatch.setattr(held_out, "append", full)
    with pytest.raises(InputError, match="No space left"):
        karat.evaluate(path, RUN, ["P@1"], part="held_out")


def test_a_part_that_there_is_not_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="no query is in the part 'heldout'; did you mean"):
        karat.evaluate(path, RUN, part="heldout")
    with pytest.raises(UsageError, match=r"the queries have no parts.*\n.*karat golden split"):
        karat.evaluate(path, RUN, queries=BARE, part="dev")
    with pytest.raises(UsageError, match="no queries were given"):
        karat.evaluate({"q1": {"a": 1}}, RUN, part="dev")


@pytest.mark.parametrize("shape", ["array", "lines", "own"])
def test_a_file_keeps_its_shape_when_it_is_split(shape: str, tmp_path: Path) -> None:
    items = [{"query": f"text {n}", "relevant_docs": {"a": 1.5}, "x": [n]} for n in range(6)]
    path = tmp_path / "g.json"
    if shape == "own":
        golden = karat.GoldenSet.from_list([{**item, "x": 1} for item in items])
        golden.add("to judge")
        golden.save(path)
    else:
        text = json.dumps(items) if shape == "array" else "\n".join(map(json.dumps, items))
        path.write_text(text, encoding="utf-8")
    before = karat.GoldenSet.load(path)
    made = split_file(path, 0.5)
    after = karat.GoldenSet.load(path)
    assert [q.attributes["part"] for q in after] == list(made.parts.values())
    assert made.parts == before.split().parts
    assert list(after) == list(before)
    text = path.read_text(encoding="utf-8")
    assert text.startswith({"array": "[\n{", "lines": '{"query"', "own": '{"karat_g'}[shape])
    assert split_file(path, 0.9).new == []
    assert path.read_text(encoding="utf-8") == text  # nothing is new: nothing is written


def test_ranks_that_contradict_scores_are_said_of_a_part(path: Path) -> None:
    # q1 and q2 are listed against their scores; q2 is held out.
    ranked = [("b", 1.0), ("a", 2.0)]
    run = karat.Run.from_dict({"q1": ranked, "q2": ranked, "q3": ["a"]}, "mine")
    for part, count in (("dev", "1 query"), (None, "2 queries")):
        notes = karat.evaluate(path, run, ["P@1"], part=part).notes
        assert f"ranks contradict scores in {count}: ordered by score, ranks ignored" in notes


def test_slices_that_show_the_held_out_part_are_uses(path: Path) -> None:
    ledger = "g.json.held_out.jsonl"
    both = karat.evaluate(path, [RUN, OTHER], ["P@1"], by="part", commit="1a2b")
    assert both.notes[0] == f"held-out part: use 1 (no run before; {ledger})"
    assert "the 3 held-out queries are counted with the others: --part dev leaves them out" in (
        both.notes
    )
    compared = karat.compare(path, RUN, OTHER, ["P@1"], by=["part,query_length"], commit="1a2b")
    assert compared.notes[0] == f"held-out part: use 2 (2 runs before; {ledger})"
    told = {}
    for rule in ("slice=part=held_out", "each=part", "slice=part=dev", ""):
        key, _, value = rule.partition("=")
        sliced = {key: value} if rule else {}
        policy = {"rule": [{"measure": "P@1", "min": 0.5, **sliced}]}
        told[rule] = karat.gate(policy, path, None, RUN, commit="1a2b").notes[0]
        # A rehearsal shows nothing.
        karat.gate(policy, path, RUN, karat.Run.from_dict({}, "none"))
    assert told["slice=part=held_out"] == f"held-out part: use 3 (2 runs before; {ledger})"
    assert told["each=part"] == f"held-out part: use 4 (2 runs before; {ledger})"
    for rule in ("slice=part=dev", ""):
        note = told[rule]
        assert "counted with the others, and this is not recorded as a use of them" in note
        assert isinstance(note, Note)
        assert note.concern is Concern.INPUT
    found = uses_of(path)
    assert [(use.queries, use.commit) for use in found] == [(3, "1a2b")] * 4
    assert [name for name, _ in found[1].runs] == ["bm25", "other"]


def test_each_golden_set_of_a_workspace_has_its_own_count(path: Path) -> None:
    (path.parent / "karat.toml").touch()
    (path.parent / "sub").mkdir()
    other = path.parent / "sub" / "g.json"
    other.write_bytes(path.read_bytes())
    for golden in (path, other):
        notes = karat.evaluate(golden, RUN, ["P@1"], part="held_out").notes
        assert notes[0] == "held-out part: use 1 (no run before; held_out.jsonl)"
    assert [use.golden for use in uses_of(path)] == ["g.json"]
    assert [use.golden for use in uses_of(other)] == ["sub/g.json"]
    assert len(uses_of(path.parent / "karat.toml")) == 2


def test_judgments_in_memory_are_of_no_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels").mkdir()  # what judgments in memory are called in messages
    golden = karat.GoldenSet.load(path)
    judged = karat.Qrels(golden.qrels.frame)
    there = sorted(tmp_path.iterdir())
    notes = karat.evaluate(judged, RUN, ["P@1"], queries=golden.queries, part="held_out").notes
    assert "this use is not recorded" in notes[0]
    assert sorted(tmp_path.iterdir()) == there
    # What was read knows its file, on another scale too, and as a pair of tables.
    read = karat.read_qrels(path)
    assert read.on_scale("0-4").only(["q1"]).file == str(path)
    assert karat.GoldenSet.from_tables(golden.queries, read).qrels.file == str(path)
