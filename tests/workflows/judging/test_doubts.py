"""Pairs for people from machine judges, in a workspace: the queue, chances, and an estimate."""

from __future__ import annotations

import json

import polars as pl
import pytest

from karat.clients.llm.asking import Reply
from karat.errors import InputError, UsageError
from karat.store.sql import pairs
from karat.tables import Pairs, Qrels, Run
from karat.tables.golden.machine_judges import JudgeConfig, JudgePair
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.pooling import pool
from karat.workflows.judging.autojudge import run
from karat.workflows.judging.doubts import PEOPLE, doubts
from karat.workflows.judging.machine_grades import doubts_in, pairs_of_golden_set
from karat.workflows.judging.queue import Judging
from karat.workflows.offline.machine_grades import machine_means

ALL = [(f"q{q}", f"d{d}") for q in range(6) for d in range(5)]


class Judge:
    """Grades by the number of the document."""

    async def ask(self, question):
        return Reply(value={"grade": int(question.pair.doc_id[1:]) % 4})

    async def close(self):
        pass


@pytest.fixture
def judge(tmp_path):
    return JudgeConfig(name="mine", kind="python", root=tmp_path, function="m:f")


@pytest.fixture
def graded(shop, tick, tmp_path, judge):
    """Six queries with five documents each, all graded by the judge; d0 is judged by two people."""
    rows = [json.dumps({"_id": f"q{n}", "text": f"query {n}"}) for n in range(6)]
    (tmp_path / "queries.jsonl").write_text("\n".join(rows), encoding="utf-8")
    rows = [json.dumps({"_id": f"d{n}", "text": f"words {n}"}) for n in range(5)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
    for name in ("queries.jsonl", "corpus.jsonl"):
        import_from(shop, tmp_path / name, now=tick())
    pool(shop, [Run.from_dict({f"q{n}": {"d0": 1.0} for n in range(6)}, "first")], now=tick())
    for name, grade in (("ann", 3), ("ben", 2)):
        rater = Judging(shop, name, tick)
        while (card := rater.card()) is not None:
            rater.submit(card, grade)
    run(judge, [JudgePair(q, d, f"query {q}", f"words {d}") for q, d in ALL], judge=Judge())
    return shop


def test_drawn_pairs_are_queued_with_their_chances_and_disagreements_for_one_more(
    graded, judge, tick
):
    found = doubts_in(graded, [judge], queue=True, now=tick(), budget=8)
    drawn = {(r.query_id, r.doc_id): r.chance for r in found.pairs if r.chosen_by != PEOPLE}
    assert found.queued == len(drawn) > 0
    # Of d0 people said 2.5 and the judge 0: two steps apart, and judged.
    assert {r.doc_id for r in found.pairs if r.chosen_by == PEOPLE} == {"d0"}
    with graded.store.read() as connection:
        frame = pairs.frame(connection, graded.golden.id)
    rows = {(r["query_id"], r["doc_id"]): r for r in frame.iter_rows(named=True)}
    for key, chance in drawn.items():
        assert (rows[key]["chance"], rows[key]["open"]) == (pytest.approx(chance), 2)
    assert {rows[q, "d0"]["open"] for q in ("q0", "q5")} == {1}
    assert Judging(graded, "cleo", tick).card() is not None


def test_what_people_say_of_drawn_pairs_enters_an_estimate_by_its_chances(judge):
    run(judge, [JudgePair(q, d, f"query {q}", f"words {d}") for q, d in ALL], judge=Judge())
    true = {(q, d): (int(q[1:]) + int(d[1:])) % 4 for q, d in ALL}
    runs = [
        Run.from_dict(
            {f"q{q}": {f"d{d}": float(sign * d) for d in range(5)} for q in range(6)}, name
        )
        for name, sign in (("up", 1), ("down", -1))
    ]
    none = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64})
    found = doubts([judge], none, budget=18, salt="s", runs=runs, measure="DCG@3")
    assert {row.doc_id for row in found.pairs} <= {"d0", "d1", "d3", "d4"}  # d2 is third in both
    rows = [(row.query_id, row.doc_id, true[row.query_id, row.doc_id]) for row in found.pairs]
    people = pl.DataFrame(rows, schema=["query_id", "doc_id", "grade"], orient="row")
    machine = pl.DataFrame(
        [(q, d, float(int(d[1:]) % 4), judge.rater) for q, d in ALL],
        schema=["query_id", "doc_id", "grade", "rater"], orient="row",
    )  # fmt: skip
    (row,) = machine_means(
        Qrels(people), runs, machine, ["DCG@3"], difference=True, chances=found.chances
    )
    assert row.ci_low < row.estimate < row.ci_high
    assert row.judged == len(found.pairs)


def test_what_people_judged_is_certain(judge):
    run(judge, [JudgePair(q, d, f"query {q}", f"words {d}") for q, d in ALL], judge=Judge())
    people = pl.DataFrame({"query_id": ["q0"], "doc_id": ["d1"], "grade": [1.0]})
    found = doubts([judge], people, budget=5, salt="s")
    assert found.chances.row(0) == ("q0", "d1", 1.0)
    assert Pairs(found.chances).frame.height == len(ALL)
    assert found.chances["chance"].min() > 0


def test_mistakes(judge, tmp_path):
    none = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64})
    with pytest.raises(InputError, match="has graded nothing"):
        doubts([judge], none, budget=5, salt="s")
    run(judge, [JudgePair(q, d, f"query {q}", f"words {d}") for q, d in ALL], judge=Judge())
    one = Run.from_dict({"q0": {"d0": 1.0}}, "one")
    with pytest.raises(UsageError, match="nDCG@10 is not linear"):
        doubts([judge], none, budget=5, salt="s", runs=[one], measure="nDCG@10")
    with pytest.raises(UsageError, match="3 runs"):
        doubts([judge], none, budget=5, salt="s", runs=[one] * 3)


def test_each_persons_grades_go_into_the_passport(graded):
    found = pairs_of_golden_set(graded)
    assert len(found.ratings) == 12
    assert {(who, grade) for _, _, who, grade in found.ratings} == {("ann", 3), ("ben", 2)}
