"""Results of gates in a workspace: kept, listed, and read back as they were."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import UsageError
from karat.formats.own import history
from karat.release.policy import Policy, policy_of
from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange
from karat.tables.release.gate import Gate
from karat.tables.release.history import Point, Value
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.release.gate import gate
from karat.workflows.release.stored_gates import (
    Checked,
    check_by_file,
    check_stored,
    gate_record,
    gates_listed,
    gates_of,
    gates_of_points,
    keep,
    newest_of_candidates,
    policies,
    with_checks,
)
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.stored_runs import store_runs, stored_by_name
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

NOW = 1_800_000_000_000_000  # 2027-01-15 08:00:00 UTC
SECOND, DAY = 1_000_000, 86_400_000_000
IDS = [f"q{number}" for number in range(8)]
RULE = """\
[[rule]]
measure = "RR"
each = "class"
max_drop = 0.1

[[known_failure]]
query_id = "q7"
min = 1
reason = "no synonyms"
"""
BY = Checked("page", "egon", NOW)


def rankings(name: str, worse: list[str], **about: str) -> Run:
    """The good document first, in some queries third."""
    rows = [
        (query, doc, 3.0 - place)
        for query in IDS
        for place, doc in enumerate(("b", "c", "good") if query in worse else ("good", "b", "c"))
    ]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    run = Run.from_frame(frame, name=name)
    return Run.from_batches(name, [run.frame().drop("rank")], answers=run.answers, about=about)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight queries in two classes; ``new`` is worse than ``old`` in one of them."""
    root = tmp_path_factory.mktemp("gates") / "shop"
    make_workspace(root, now=1, name="shop", environment={})
    judged = pl.DataFrame({"query_id": IDS, "doc_id": ["good"] * 8, "grade": [3.0] * 8})
    facts = judged.with_columns(rater=pl.lit("ann"), reason=pl.lit(None, pl.String))
    queries = pl.DataFrame(
        {"query_id": IDS, "text": [f"text of {q}" for q in IDS], "class": ["name", "task"] * 4}
    )
    with open_workspace(root, now=1, environment={}) as found:
        held = Exchange("csv", queries=queries, judgments=facts)
        import_exchange(found, held, file="f", sha256="0", now=1)
        runs = [
            rankings("old", ["q7"], index="one"),
            rankings("new", ["q0", "q2", "q7"], index="two"),
        ]
        store_runs(found, runs, now=2)
    (root / "gate.toml").write_text(RULE)
    return root


@pytest.fixture
def opened(made: Path, tmp_path: Path) -> Iterator[Workspace]:
    root = Path(shutil.copytree(made, tmp_path / "shop"))
    with open_workspace(root, now=NOW, environment={}) as found:
        yield found


def policy(limit: float = 0.1) -> Policy:
    return policy_of({"rule": [{"measure": "RR", "max_drop": limit}]}, "some.toml")


def checked(opened: Workspace, by: Checked = BY, limit: float = 0.1) -> int:
    number, _ = check_stored(opened, policy(limit), "old", "new", by)
    assert number is not None
    return number


def bare(gate: Gate) -> Gate:
    """Without what only the process has that computed it."""
    return replace(gate, scores=None, meant=None, plan=None)


def test_a_result_is_read_back_as_it_was(opened: Workspace) -> None:
    by = replace(BY, commit="abc")
    number = check_by_file(opened, "gate.toml", 1, 2, by, edition="now")
    rules = policy_of({
        "rule": [{"measure": "RR", "each": "class", "max_drop": 0.1}],
        "known_failure": [{"query_id": "q7", "min": 1, "reason": "no synonyms"}],
    }, "gate.toml")  # fmt: skip
    _, again = check_stored(opened, rules, "old", "new", None)
    record = gate_record(opened, number)
    assert record is not None
    assert record.gate.to_dict() == again.to_dict()
    assert bare(record.gate) == bare(again)
    # RR of the class name (q0, q2, q4, q6): 1 before, (1/3 + 1/3 + 1 + 1) / 4 = 2/3 now.
    decides = record.row.decides
    assert decides is not None
    assert (record.row.verdict, decides.attribute, decides.slice) == ("fail", "class", "name")
    assert decides.candidate_value == pytest.approx(2 / 3)
    assert [row.query_id for row in record.gate.lost] == ["q0", "q2"]
    moves = record.gate.lost[0].moves
    assert moves
    assert (moves[0].doc_id, moves[0].baseline_rank, moves[0].candidate_rank) == ("good", 1, 3)
    assert record.gate.known_failures[0].reason == "no synonyms"
    assert [each.key for each in record.gate.changes] == ["index"]
    assert record.golden == "shop"
    row = record.row
    assert (row.time_us, row.person, row.source, row.commit) == (NOW, "egon", "page", "abc")
    assert [each.name for each in record.origins] == [
        "judgments",
        "queries",
        "old",
        "new",
        "policy",
    ]
    assert record.origins[3].sha256 == record.gate.hashes["candidate"]
    assert ("policy", "gate.toml") in record.rules
    assert record.to_dict()["gate"] == again.to_dict()
    assert record.to_dict()["row"]["decides"]["slice"] == "name"
    assert gate_record(opened, number + 1) is None


def test_what_decides_is_known_without_the_rest(opened: Workspace) -> None:
    failed, passed = checked(opened), checked(opened, limit=0.9)
    rows = gates_listed(opened)
    assert [row.id for row in rows] == [passed, failed], "newest first"
    assert [row.decides for row in rows] == [None, None]
    newest, oldest = with_checks(opened, rows)
    assert newest.decides is None, "every rule holds"
    assert oldest.decides is not None
    assert oldest.decides.rule == "RR drops by at most 0.1"


def test_the_same_result_is_kept_once_within_a_day(opened: Workspace) -> None:
    first = checked(opened)
    assert checked(opened, replace(BY, now=NOW + DAY)) == first
    assert checked(opened, replace(BY, now=NOW + DAY + 1)) != first
    assert checked(opened, replace(BY, person="olga")) != first
    assert checked(opened, replace(BY, commit="abc")) != first
    command = replace(BY, source="command")
    assert checked(opened, command) != checked(opened, command)
    store_runs(opened, [rankings("new", ["q0"])], now=NOW)
    assert checked(opened) != first, "another run of this name"


def test_places_are_found_by_content_then_by_name(opened: Workspace) -> None:
    number = checked(opened)
    record = gate_record(opened, number)
    assert record is not None
    assert (record.places.candidate, record.places.baseline, record.places.same) == (2, 1, True)
    assert (record.places.comparison, record.places.release) == (None, None)
    compared = [
        stored_comparisons.ask(opened, Asked(ids), by="egon", now=NOW) for ids in ([1, 2], [2, 1])
    ]
    store_runs(opened, [rankings("other", ["q3"])], now=NOW)
    record = gate_record(opened, number)
    assert record is not None
    assert record.places.comparison == compared[0], "of this baseline and candidate"
    # Of a gate over a part of the queries, the content of the run is another.
    part = gate_of(rankings("old", []), rankings("other", ["q0"]))
    record = gate_record(opened, keep(opened, part, BY))
    assert record is not None
    assert (record.places.candidate, record.places.same) == (3, False)


def gate_of(baseline: Run, candidate: Run) -> Gate:
    qrels = {query: {"good": 3} for query in IDS}
    return gate(policy(), qrels, baseline, candidate)


def test_texts_that_a_database_cannot_hold(opened: Workspace) -> None:
    odd = gate_of(rankings("old", []), rankings("new", []))
    odd = replace(odd, candidate="n\ud800", notes=["a\0b"], policy="p\0.toml")
    record = gate_record(opened, keep(opened, odd, BY))
    assert record is not None
    assert (record.row.candidate, record.row.policy) == ("n?", "p\ufffd.toml")
    assert record.gate.notes == ["a\ufffdb"]


def test_gates_of_a_run_are_of_its_content(opened: Workspace) -> None:
    number = checked(opened)
    old, new = (stored_by_name(opened)[name] for name in ("old", "new"))
    assert [row.id for row in gates_of(opened, new)] == [number]
    assert [row.id for row in gates_of(opened, new, old)] == [number]
    assert gates_of(opened, old) == []
    assert gates_of(opened, new, new) == []
    store_runs(opened, [rankings("new", ["q0"])], now=NOW)
    assert gates_of(opened, stored_by_name(opened)["new"]) == [], "the same name, another run"


def point(at_us: int, run: str = "new", **values: Any) -> Point:
    time = pl.Series([at_us]).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")[0]
    given = {"kind": "gate", "commit": None, "verdict": "fail", "rules": "", "karat": "1"}
    value = (Value("RR", 0.5),)
    hashes = dict.fromkeys(("queries", "qrels", "run", "corpus"))
    return Point(time=time, run=run, values=value, hashes=hashes, **given | values)


def test_a_point_of_a_history_has_the_gate_of_its_second_or_commit(opened: Workspace) -> None:
    number = checked(opened, replace(BY, commit="abc"))
    points = [
        (point(NOW + SECOND // 2), number),
        (point(NOW + 5 * SECOND), None),
        (point(NOW + DAY, commit="abc"), number),
        (point(NOW + DAY, commit="def"), None),
        (point(NOW, verdict="pass"), None),
        (point(NOW, "old"), None),
        (point(NOW, kind="evaluate", verdict=None), None),
    ]
    assert gates_of_points(opened, [each for each, _ in points]) == [found for _, found in points]
    path = opened.workspace.root / "history.jsonl"
    history.append(path, point(NOW, verdict="pass"), point(NOW, series="night"))
    record = gate_record(opened, number)
    assert record is not None
    assert (record.places.history, record.places.series) == ("history.jsonl", "night")


def test_the_newest_of_each_candidate_within_30_days(opened: Workspace) -> None:
    checked(opened)
    later = checked(opened, replace(BY, now=NOW + SECOND), limit=0.9)
    assert {name: row.id for name, row in newest_of_candidates(opened).items()} == {"new": later}
    other = gate_of(rankings("old", []), rankings("other", []))
    last = keep(opened, other, replace(BY, now=NOW + SECOND + 30 * DAY))
    assert {row.id for row in newest_of_candidates(opened).values()} == {later, last}
    keep(opened, other, replace(BY, now=NOW + 2 * SECOND + 30 * DAY, commit="abc"))
    assert set(newest_of_candidates(opened)) == {"other"}


def test_policies_are_those_of_two_folders(opened: Workspace) -> None:
    root = opened.workspace.root
    (root / "policies").mkdir()
    (root / "policies/strict.toml").write_text('[[rule]]\nmeasure = "RR"\nmin = 0.9\n')
    (root / "pyproject.toml").write_text("[tool]\nname = 'x'\n")
    (root / "policies/broken.toml").write_text("[[rule]]\nmeasure =\n")
    assert policies(opened) == ["gate.toml", "policies/broken.toml", "policies/strict.toml"]
    assert check_by_file(opened, "policies/strict.toml", None, 2, BY, edition="now")
    assert gates_listed(opened)[0].policy == "policies/strict.toml"
    with pytest.raises(UsageError, match=r"has no policy '\.\./karat\.toml'"):
        check_by_file(opened, "../karat.toml", None, 2, BY, edition="now")
    with pytest.raises(Exception, match=r"^policies/broken\.toml, line 2"):
        check_by_file(opened, "policies/broken.toml", None, 2, BY, edition="now")
