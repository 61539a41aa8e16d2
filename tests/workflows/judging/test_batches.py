"""Batch files out and in: half a batch, failures, twice the same file; the ledger is exact."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from karat.clients.llm.fake_server import FakeJudge
from karat.errors import InputError, UsageError
from karat.tables.golden.machine_judges import JudgeConfig, JudgePair, Prices
from karat.workflows.judging.batches import batch_in, batch_out

PERFECT = [[float(row == column) for column in range(4)] for row in range(4)]
GRADES = {(f"q{n % 5}", f"d{n}"): float(n % 4) for n in range(20)}
PAIRS = [JudgePair(q, d, f"text of {q}", f"some words of {d}") for q, d in GRADES]


@pytest.fixture
def config(tmp_path):
    return JudgeConfig(
        name="j", kind="chat", root=tmp_path, base_url="https://api.example.org/v1", model="m",
        prices=Prices(input=1.0, output=10.0, batch=0.5),
    )  # fmt: skip


def requests(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def answered(asked, pairs=PAIRS):
    """The answers of an API, the last request first."""
    judge, rows = FakeJudge(GRADES, PERFECT), []
    text_of = {pair.document: pair for pair in pairs}
    for n, row in enumerate(reversed(asked)):
        document = json.loads(row["body"]["messages"][1]["content"])["document"]["body"]
        pair = text_of[document]
        body = judge.answer(f"{pair.query_id}/{pair.doc_id}/0", row["body"])
        body["usage"] = {"prompt_tokens": 100, "completion_tokens": 10}
        reply = {"status_code": 200, "request_id": f"r{n}", "body": body}
        rows.append({"id": f"batch_req_{row['custom_id'][:9]}", "custom_id": row["custom_id"],
                     "response": reply, "error": None})  # fmt: skip
    return rows


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def ledger(root):
    with closing(sqlite3.connect(root / "judges/ledger.sqlite")) as db:
        return db.execute("SELECT state, cost_nano, billed FROM attempt ORDER BY id").fetchall()


def test_a_batch_goes_out_and_comes_back_in_two_halves(config, tmp_path):
    planned = batch_out(config, PAIRS, tmp_path / "out.jsonl")
    asked = requests(tmp_path / "out.jsonl")
    assert (planned.calls, len(asked)) == (20, 20)
    assert set(asked[0]) == {"custom_id", "method", "url", "body"}
    assert (asked[0]["method"], asked[0]["url"]) == ("POST", "/v1/chat/completions")
    assert len(asked[0]["custom_id"]) == 64  # the most that an API takes
    assert ledger(tmp_path) == []
    rows = answered(asked)
    half = batch_in(config, PAIRS, [write(tmp_path / "half.jsonl", rows[:8])])
    assert half.states == {"ok": 8}
    assert {(e.query_id, e.doc_id): e.verdict.grade for e in half.judged}.items() <= GRADES.items()
    # (100 · 1 + 10 · 10) $ per million, half of it in batches: 100,000 billionths a request.
    assert ledger(tmp_path) == [("ok", 100_000, 1)] * 8
    assert batch_out(config, PAIRS, tmp_path / "rest.jsonl").calls == 12
    whole = batch_in(config, PAIRS, [write(tmp_path / "all.jsonl", rows)])
    assert (whole.states, whole.asked) == ({"ok": 20}, 12)
    again = batch_in(config, PAIRS, [str(tmp_path / "all.jsonl")])
    assert (again.states, again.asked, again.spent.attempts) == ({"ok": 20}, 0, 0)
    assert len(ledger(tmp_path)) == 20


def test_what_failed_is_a_state_that_is_written_once_and_goes_out_again(config, tmp_path):
    batch_out(config, PAIRS, tmp_path / "out.jsonl")
    rows = answered(requests(tmp_path / "out.jsonl"))
    rows[0] |= {"response": None, "error": {"code": "batch_expired", "message": "expired"}}
    rows[1]["response"] = {"status_code": 429, "body": {"error": {"message": "slow down"}}}
    rows[2]["response"]["body"]["choices"][0]["message"]["content"] = "no grade"
    rows[3]["response"]["body"] = {"choices": []}
    rows[4]["response"]["body"]["choices"][0] |= {"finish_reason": "length"}
    path = write(tmp_path / "in.jsonl", rows)
    found = batch_in(config, PAIRS, [path])
    assert found.states == {"transport_failed": 3, "malformed": 1, "truncated": 1, "ok": 15}
    # An expired request and one that was refused are not paid; an answer without tokens is unknown.
    assert sorted((row for row in ledger(tmp_path) if row[0] != "ok"), key=str) == [
        ("malformed", 100_000, 1),
        ("transport_failed", 0, 0),
        ("transport_failed", 0, 0),
        ("transport_failed", None, 1),
        ("truncated", 100_000, 1),
    ]
    batch_in(config, PAIRS, [path])
    assert len(ledger(tmp_path)) == 20
    assert batch_out(config, PAIRS, tmp_path / "again.jsonl").calls == 5


def test_many_failures_at_the_start_end_nothing(config, tmp_path):
    batch_out(config, PAIRS, tmp_path / "out.jsonl")
    rows = answered(requests(tmp_path / "out.jsonl"))
    for row in rows[:19]:
        row["response"] = {"status_code": 401, "body": None}
    found = batch_in(config, PAIRS, [write(tmp_path / "in.jsonl", rows)])
    assert found.states == {"transport_failed": 19, "ok": 1}
    assert not found.stopped


def test_a_budget_limits_the_file(config, tmp_path):
    whole = batch_out(config, PAIRS, tmp_path / "out.jsonl")
    some = batch_out(config, PAIRS, tmp_path / "out.jsonl", budget=whole.dollars / 2)
    assert 8 <= some.calls <= 10
    assert some.dollars <= whole.dollars / 2
    assert len(requests(tmp_path / "out.jsonl")) == some.calls


def test_equal_texts_are_one_request_and_both_graded(config, tmp_path):
    twin = replace(PAIRS[3], doc_id="twin")
    batch_out(config, [*PAIRS, twin], tmp_path / "out.jsonl")
    rows = answered(requests(tmp_path / "out.jsonl"))
    assert len(rows) == 20
    found = batch_in(config, [*PAIRS, twin], [write(tmp_path / "in.jsonl", rows)])
    assert found.states == {"ok": 21}


def test_answers_about_something_else_are_refused_and_some_noted(config, tmp_path):
    batch_out(config, PAIRS, tmp_path / "out.jsonl")
    path = write(tmp_path / "in.jsonl", answered(requests(tmp_path / "out.jsonl")))
    found = batch_in(config, PAIRS[:15], [path])
    assert found.notes == ["5 answers are about other pairs or another version"]
    with pytest.raises(InputError, match="none of 20 answers are about these pairs"):
        batch_in(replace(config, model="another"), PAIRS, [path])


@pytest.mark.parametrize("line", ["[]", "{}", '{"custom_id": "k", "response": 3}', "half a li"])
def test_a_line_that_is_no_answer_is_named(line, config, tmp_path):
    (tmp_path / "in.jsonl").write_text(f"\n{line}\n")
    with pytest.raises(InputError, match="not an answer of a batch") as found:
        batch_in(config, PAIRS, [str(tmp_path / "in.jsonl")])
    assert found.value.line == 2


def test_a_program_takes_no_batches(config, tmp_path):
    with pytest.raises(UsageError, match="it takes no batch files"):
        batch_out(replace(config, kind="command", command=("x",)), PAIRS, tmp_path / "o.jsonl")
