"""The state of declared judges: their last run, passports of earlier versions, permits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from karat.clients.llm.asking import NoReply, Reply
from karat.clients.llm.ledger import Ledger
from karat.errors import UsageError
from karat.formats.own.passports import KEYS, certified, write_passport
from karat.tables.golden.machine_judges import JudgeConfig, JudgePair
from karat.workflows.judging.autojudge import run
from karat.workflows.judging.machine_judges import ALL, judge_report, judge_states

PAIRS = [JudgePair(f"q{n}", f"d{n}", "text", f"words {n}") for n in range(8)]


class Judge:
    """Answers 1, but for some documents not at all."""

    def __init__(self, *lost):
        self._lost = lost

    async def ask(self, question):
        if question.pair.doc_id in self._lost:
            raise NoReply("the line is cut")
        return Reply(value={"grade": 1})

    async def close(self):
        pass


@pytest.fixture
def judge(tmp_path):
    return JudgeConfig(name="mine", kind="python", root=tmp_path, function="m:f")


def state_of(judge, now=None):
    [found] = judge_states([judge], stored={judge.rater: 3}, now=now)
    return found


def passport(judge, verdict, slices=()):
    found = dict.fromkeys(KEYS) | {"judge": judge.rater, "verdict": verdict, "tests": []}
    found |= {"slices": list(slices)}
    write_passport(judge.root, judge.rater, json.dumps(found))


def test_a_judge_that_did_nothing_leaves_no_file(judge, tmp_path):
    found = state_of(judge)
    assert (found.passport, found.pairs, found.stored, found.last) == (None, 0, 3, None)
    assert list(tmp_path.iterdir()) == []


def test_the_last_run_says_what_came_of_its_pairs_and_what_failed(judge):
    run(judge, PAIRS[:3], judge=Judge())
    run(judge, PAIRS, judge=Judge("d4", "d6"))
    found = state_of(judge)
    last = found.last
    assert (last.what, last.state, last.stopped) == ("run", "done", "")
    assert (last.pairs, last.known, last.done, last.waiting) == (8, 3, 5, 0)
    assert last.states == {"ok": 3, "transport_failed": 2}
    assert [(each.state, each.error, each.requests) for each in last.failures] == [
        ("transport_failed", "the line is cut", 2)
    ]
    assert (found.pairs, last.spent.attempts, found.spent.attempts) == (6, 5, 8)
    # A later run of another judge does not add to it.
    run(replace(judge, model="other"), PAIRS, judge=Judge())
    assert state_of(judge).last == last


def test_a_run_that_has_not_ended_is_running_until_it_is_quiet(judge):
    with Ledger(judge.root) as ledger:
        ledger.begin_run(judge.rater, "run", 8, 0, 2_000_000_000)
        began = ledger.last_run(judge.rater, 0).began_us
        ledger.begin("key", judge.rater, PAIRS[0])
    last = state_of(judge, began + 1_000_000).last
    assert (last.state, last.waiting, last.budget) == ("running", 8, 2.0)
    assert state_of(judge, began + 700_000_000).last.state == "interrupted"


def test_a_run_that_cannot_begin_says_why(judge):
    with pytest.raises(UsageError):
        run(judge, PAIRS)  # there is no module m
    last = state_of(judge).last
    assert last.state == "stopped"
    assert "m" in last.stopped


def test_a_damaged_passport_is_none(judge):
    write_passport(judge.root, judge.rater, '{"verdict": "certified"}')
    assert certified(judge.root) == set()
    assert state_of(judge).passport is None


def test_another_model_makes_a_passport_outdated(judge):
    passport(judge, "certified")
    assert state_of(judge).passport == "certified"
    assert certified(judge.root) == {judge.rater}
    found = judge_report(judge, state_of(judge))
    assert (found.passport.judge, list(found.may), list(found.may_not)) == (judge.rater, [ALL], [])
    other = replace(judge, function="m:g")
    assert state_of(other).passport == "outdated"
    found = judge_report(other, state_of(other))
    assert (found.passport.judge, list(found.may), list(found.may_not)) == (judge.rater, [], [ALL])


@pytest.mark.parametrize(
    ("verdict", "may", "may_not"), [("certified", ["a"], ["b"]), ("candidate", [], [ALL])]
)
def test_a_permit_is_by_slice(judge, verdict, may, may_not):
    passport(judge, verdict, [{"name": "a", "passed": True}, {"name": "b", "passed": False}])
    found = judge_report(judge, state_of(judge))
    assert (list(found.may), list(found.may_not)) == (may, may_not)
