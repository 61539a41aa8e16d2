"""Machine judges against a real server on loopback: faults, money, crashes, passports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from karat.clients.llm.asking import NoReply, Question, open_judge
from karat.clients.llm.fake_server import FakeJudge, read_confusion
from karat.clients.llm.ledger import Ledger
from karat.errors import InputError, UsageError
from karat.formats.own.passports import write_passport
from karat.golden.judge_prompt import LONGEST, messages
from karat.reports.judging.autojudge import passport_json
from karat.reports.writers.plain import to_json
from karat.tables import Documents, Qrels, Queries
from karat.tables.golden.machine_judges import JudgeConfig, JudgePair, Prices
from karat.workflows.judging import _asking
from karat.workflows.judging.autojudge import certify, judgments_frame, pairs_to_judge, plan, run

PERFECT = [[float(row == column) for column in range(4)] for row in range(4)]
GRADES = {(f"q{n % 20}", f"d{n}"): float(n % 4) for n in range(120)}
GOOD = json.dumps({"evidence": "words", "grade": 2, "cannot_judge": None, "reason": "r"})


def pair(number):
    query, document = f"q{number % 20}", f"d{number}"
    return JudgePair(query, document, f"text of {query}", f"some words of {document}")


PAIRS = [pair(number) for number in range(120)]


def completion(text, **changed):
    choice = {"finish_reason": "stop", "message": {"content": text}} | changed
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"id": "x", "model": "m-1", "choices": [choice], "usage": usage}


@contextmanager
def serving(answer):
    """A server; ``answer(header, body, number)`` returns status, content and headers."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            header = self.headers.get("karat-pair", "")
            asked.append((header, body, dict(self.headers)))
            status, content, headers = answer(header, body, len(asked))
            if status is None:
                self.close_connection = True
                self.connection.shutdown(2)
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def fake(confusion=PERFECT, grades=GRADES):
    judge = FakeJudge(grades, confusion)
    return lambda header, body, _number: (200, judge.answer(header, body), {})


def config(root, url="http://127.0.0.1:9/v1", **changed):
    prices = Prices(input=1.0, output=10.0)
    declared = JudgeConfig(
        name="j", kind="chat", root=root, base_url=url, model="m", prices=prices, timeout=5.0
    )
    return replace(declared, **changed)


def attempts(root):
    with closing(sqlite3.connect(root / "judges/ledger.sqlite")) as db:
        return db.execute(
            "SELECT state, cost_nano, billed, http FROM attempt ORDER BY id"
        ).fetchall()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Waits of a millisecond, so that retries take no time."""
    monkeypatch.setattr(_asking.random, "uniform", lambda low, high: 0.001)


# --- grades ---


def test_a_judge_that_knows_gives_every_grade_once_and_is_asked_once(tmp_path):
    with serving(fake()) as (url, asked):
        declared = config(tmp_path, url)
        assert (plan(declared, PAIRS).calls, plan(declared, PAIRS).known) == (120, 0)
        first = run(declared, PAIRS)
        again = run(declared, PAIRS)
        assert plan(declared, PAIRS).calls == 0
    assert {(j.query_id, j.doc_id): j.verdict.grade for j in first.judged} == GRADES
    assert [j.verdict for j in again.judged] == [j.verdict for j in first.judged]
    assert (first.asked, again.asked, len(asked)) == (120, 0, 120)
    assert first.spent.attempts == 120
    assert again.spent.attempts == 0
    rows = judgments_frame(first)
    assert rows["source"].unique().to_list() == ["llm"]
    assert rows["rater"].unique().to_list() == [declared.rater]


def test_another_model_or_template_is_another_judge(tmp_path):
    with serving(fake()) as (url, asked):
        declared = config(tmp_path, url)
        run(declared, PAIRS[:3])
        for other in (replace(declared, model="n"), replace(declared, template="T {grades}")):
            assert other.rater != declared.rater
            assert run(other, PAIRS[:3]).asked == 3
    assert len(asked) == 9


def test_equal_texts_under_other_ids_are_asked_once_and_both_graded(tmp_path):
    twin = replace(PAIRS[3], doc_id="copy")
    with serving(fake()) as (url, asked):
        declared = config(tmp_path, url)
        assert plan(declared, [PAIRS[3], twin]).calls == 1
        found = run(declared, [PAIRS[3], twin])
        later = run(declared, [replace(PAIRS[3], doc_id="later")])
    assert len(asked) == 1
    assert [(j.doc_id, j.verdict.grade) for j in found.judged] == [("d3", 3.0), ("copy", 3.0)]
    assert [(j.doc_id, j.verdict.grade) for j in later.judged] == [("later", 3.0)]
    with Ledger(tmp_path) as ledger:
        names = [doc for _, doc, _ in ledger.grades(declared.rater)]
    assert names == ["copy", "d3", "later"]


def test_the_key_is_sent_and_never_stored(tmp_path):
    from karat.tables.engines import Secret

    os.environ["KARAT_TEST_KEY"] = "sk-geheim"
    try:
        with serving(fake()) as (url, asked):
            run(config(tmp_path, url, api_key=Secret(env="KARAT_TEST_KEY")), PAIRS[:2])
    finally:
        del os.environ["KARAT_TEST_KEY"]
    assert {headers["authorization"] for *_, headers in asked} == {"Bearer sk-geheim"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"geheim" in path.read_bytes() for path in files)


# --- faults: each ends in its state, and nothing becomes a grade ---


def once(*first):
    """Answers with these, then well."""

    def answer(_header, _body, number):
        if number <= len(first):
            return first[number - 1]
        return 200, completion(GOOD), {}

    return answer


OK = (200, completion(GOOD), {})
BAD = (200, completion("no JSON"), {})
REFUSAL = {"content": None, "refusal": "no"}
FILTERED = (200, completion("", finish_reason="content_filter"), {})
CUT = (200, completion('{"gra', finish_reason="length"), {})
RANGE = (200, completion('{"grade": 9, "cannot_judge": null}'), {})
FAULTS = {
    "429 short": ([(429, {}, {"retry-after": "0.01"}), OK], "ok", ["transport_failed", "ok"]),
    "500": ([(500, {}, {}), OK], "ok", ["transport_failed", "ok"]),
    "dropped": ([(None, b"", {}), OK], "ok", ["transport_failed", "ok"]),
    "HTML": ([(200, b"<html>", {}), OK], "ok", ["transport_failed", "ok"]),
    "refusal": ([(200, completion("", message=REFUSAL), {})], "refused", ["refused"]),
    "filter": ([FILTERED], "content_filtered", ["content_filtered"]),
    "length": ([CUT] * 2, "truncated", ["truncated"] * 2),
    "length once": ([CUT, OK], "ok", ["truncated", "ok"]),
    "bad JSON": ([BAD, BAD], "malformed", ["malformed"] * 2),
    "bad JSON once": ([BAD, OK], "ok", ["malformed", "ok"]),
    "wrong range": ([RANGE] * 2, "malformed", ["malformed"] * 2),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_in_its_state(fault, tmp_path):
    answers, state, states = FAULTS[fault]
    with serving(once(*answers)) as (url, asked):
        found = run(config(tmp_path, url), PAIRS[:1])
        later = run(config(tmp_path, url), PAIRS[:1])
    assert [each.verdict.state for each in found.judged] == [state]
    assert (found.judged[0].verdict.grade is None) == (state != "ok")
    rows = attempts(tmp_path)
    assert [row[0] for row in rows][: len(states)] == states
    assert len(asked) == len(rows)
    # What gave no grade is asked again, and then answered well.
    assert later.judged[0].verdict.state == "ok"
    assert later.asked == (state != "ok")


def test_a_truncated_reply_is_asked_for_again_with_twice_the_length(tmp_path):
    with serving(once(*FAULTS["length once"][0])) as (url, asked):
        run(config(tmp_path, url), PAIRS[:1])
    assert [body["max_tokens"] for _, body, _ in asked] == [512, 1024]


def test_a_malformed_reply_is_quoted_with_what_is_wrong_with_it(tmp_path):
    with serving(once(BAD)) as (url, asked):
        run(config(tmp_path, url), PAIRS[:1])
    (_, first, _), (_, second, _) = asked
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2] == {"role": "assistant", "content": "no JSON"}
    assert second["messages"][3]["content"] == "Not usable: the reply is not JSON. Answer again."


def test_a_server_that_hangs_is_a_timeout(tmp_path):
    def hang(_header, _body, _number):
        time.sleep(0.6)
        return OK

    with serving(hang) as (url, _):
        found = run(config(tmp_path, url, timeout=0.05), PAIRS[:1])
    assert found.judged[0].verdict.state == "transport_failed"
    assert found.spent.possibly_billed == _asking.TRIES
    assert "may have been paid" in found.notes[0]


def test_a_timeout_lowers_the_number_of_requests_at_once(tmp_path):
    """A local server answers one at once, and lets the others wait."""

    def hang(_header, _body, _number):
        time.sleep(0.3)
        return OK

    async def ask(url):
        declared = config(tmp_path, url, timeout=0.05)
        judge = open_judge(declared)
        try:
            await judge.ask(Question(PAIRS[0], messages(declared, PAIRS[0]), 9))
        finally:
            await judge.close()

    with serving(hang) as (url, _), pytest.raises(NoReply) as error:
        asyncio.run(ask(url))
    assert error.value.slower


@pytest.mark.parametrize(("status", "fix"), [(401, "api_key"), (403, "key"), (404, "model")])
def test_a_wrong_key_or_model_ends_the_run_at_once(status, fix, tmp_path):
    def refuse(_header, _body, _number):
        return status, {"error": {"message": "no such thing"}}, {}

    with serving(refuse) as (url, asked):
        found = run(config(tmp_path, url, concurrency=2), PAIRS)
    assert len(asked) <= 2
    assert fix in found.stopped
    assert "no such thing" in found.stopped


def test_a_judge_that_is_not_there_ends_the_run_soon(tmp_path):
    found = run(config(tmp_path), PAIRS)
    assert "cannot reach 127.0.0.1" in found.stopped
    assert "check that the judge runs" in found.stopped
    assert found.judged == []
    assert found.spent.attempts < 60  # of 120 pairs with eight tries each
    assert found.spent.possibly_billed == 0


def test_many_pairs_without_a_grade_end_the_run_unless_it_is_patient(tmp_path):
    many = [pair(number) for number in range(300)]

    def nonsense(_header, _body, _number):
        return 200, completion("", finish_reason="content_filter"), {}

    with serving(nonsense) as (url, asked):
        found = run(config(tmp_path, url, concurrency=4), many)
        assert "200 of the last 200 pairs have no grade" in found.stopped
        assert len(asked) < 210
        assert not run(config(tmp_path, url, concurrency=4), many, patient=True).stopped


def test_a_long_retry_after_parks_all_requests_and_fails_none(tmp_path):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    async def work(declared, ledger):
        judge = open_judge(declared)
        asking = _asking.Asking(declared, judge, ledger, sleep=sleep)
        await asking.all(_asking.keyed(declared, PAIRS[:1]))
        await judge.close()
        return asking

    limited = (429, {}, {"retry-after": "300"})
    with serving(once(*[limited] * 10)) as (url, _), Ledger(tmp_path) as ledger:
        asking = asyncio.run(work(config(tmp_path, url), ledger))
    assert [verdict.state for verdict, _ in asking.verdicts.values()] == ["ok"]
    assert max(slept) >= 299  # more than the eight tries of a pair: none of them counted


def test_a_server_without_schemas_is_asked_in_its_own_way(tmp_path):
    def old(_header, body, _number):
        kind = body.get("response_format", {}).get("type")
        if kind == "json_schema":
            return 400, {"error": "response_format json_schema is not supported"}, {}
        if kind == "json_object":
            return 400, {"error": "response_format is unknown"}, {}
        if "max_tokens" in body:
            return 400, {"error": "use max_completion_tokens"}, {}
        return 200, completion(f"```json\n{GOOD}\n```"), {}

    with serving(old) as (url, asked):
        found = run(config(tmp_path, url, concurrency=1), PAIRS[:3])
    assert found.states == {"ok": 3}
    assert len(asked) == 4 + 3  # four refusals once, then no more


def test_texts_of_a_reply_have_a_limit_where_the_server_knows_limits(tmp_path):
    """A small model that repeats itself would else never get to the grade."""

    def strict(_header, body, _number):
        if "maxLength" in json.dumps(body):
            return 400, {"error": "In context=('properties'), 'maxLength' is not permitted"}, {}
        return 200, completion(GOOD), {}

    def schemas(asked):
        return [body["response_format"]["json_schema"]["schema"] for _, body, _ in asked]

    with serving(lambda *_: (200, completion(GOOD), {})) as (url, asked):
        assert run(config(tmp_path, url), PAIRS[:1]).states == {"ok": 1}
    [sent] = schemas(asked)
    assert {p.get("maxLength") for p in sent["properties"].values()} == {LONGEST, None}
    with serving(strict) as (url, asked):
        assert run(config(tmp_path, url, concurrency=1), PAIRS[:3]).states == {"ok": 3}
    plain = schemas(asked)[1:]
    assert len(plain) == 3
    assert all("maxLength" not in json.dumps(each) for each in plain)


def test_refusals_at_the_same_time_weaken_a_request_once(tmp_path):
    """A server that takes no schemas and does take objects, asked by twenty at once."""

    def old(_header, body, _number):
        time.sleep(0.02)
        if body.get("response_format", {}).get("type") == "json_schema":
            return 400, {"error": "response_format json_schema is not supported"}, {}
        return 200, completion(GOOD), {}

    with serving(old) as (url, asked):
        found = run(config(tmp_path, url), PAIRS[:40])
    assert found.states == {"ok": 40}
    sent = {body.get("response_format", {}).get("type") for _, body, _ in asked}
    assert sent == {"json_schema", "json_object"}


# --- money ---


def test_a_budget_is_never_exceeded_and_the_rest_is_asked_later(tmp_path):
    with serving(fake()) as (url, _):
        declared = config(tmp_path, url)
        worst = plan(declared, PAIRS).dollars / 120
        found = run(declared, PAIRS, budget=worst * 10)
        assert found.stopped == "budget"
        assert 10 <= len(found.judged) < 120  # real costs are below the worst ones
        assert found.spent.cost_nano / 1e9 <= worst * 10
        rest = run(declared, PAIRS)
    assert rest.asked == 120 - len(found.judged)
    total = sum(cost for _, cost, *_ in attempts(tmp_path))
    assert total == found.spent.cost_nano + rest.spent.cost_nano


def test_what_may_have_been_paid_counts_against_the_budget(tmp_path):
    def hang(_header, _body, _number):
        time.sleep(0.3)
        return OK

    with serving(hang) as (url, _):
        declared = config(tmp_path, url, timeout=0.05, concurrency=1)
        worst = plan(declared, PAIRS[:1]).dollars
        found = run(declared, PAIRS[:5], budget=worst * 3.5)
    assert found.stopped == "budget"
    assert found.spent.possibly_billed == 3  # a fourth could cost more than there is


def test_a_budget_needs_prices(tmp_path):
    with pytest.raises(UsageError, match="needs the prices"):
        run(config(tmp_path, prices=Prices()), PAIRS, budget=1.0)


def test_an_unknown_price_is_not_zero(tmp_path):
    with serving(fake()) as (url, _):
        found = run(config(tmp_path, url, prices=Prices()), PAIRS[:2])
    assert found.spent.dollars is None
    assert found.spent.unpriced == 2


# --- crashes ---

KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_autojudge import PAIRS, config
from karat.workflows.judging.autojudge import run
run(config(Path({root!r}), {url!r}, concurrency=4), PAIRS)
"""


def test_a_killed_run_loses_no_grade_and_pays_none_twice_unmarked(tmp_path, deep):
    """The last kill is followed by a run to the end: as if it had never been killed."""
    paid = {}

    def slow(header, body, _number):
        time.sleep(0.01)
        paid[header] = paid.get(header, 0) + 1
        return 200, FakeJudge(GRADES, PERFECT).answer(header, body), {}

    for kill in range(50 if deep else 1):
        root = tmp_path / str(kill)
        root.mkdir()
        paid.clear()
        with serving(slow) as (url, _):
            code = KILLED.format(tests=str(Path(__file__).parent), root=str(root), url=url)
            process = subprocess.Popen([sys.executable, "-c", code])
            ledger = root / "judges/ledger.sqlite"
            while not ledger.exists():
                time.sleep(0.01)
                assert process.poll() is None
            time.sleep(0.05 + (kill * 37 % 100) / 400)
            process.send_signal(signal.SIGKILL)
            process.wait()
            time.sleep(0.05)
            found = run(config(root, url, concurrency=4), PAIRS)
        grades = {(each.query_id, each.doc_id): each.verdict.grade for each in found.judged}
        assert grades == GRADES
        rows = attempts(root)
        twice = sum(count - 1 for count in paid.values())
        assert twice <= sum(state == "in_flight" for state, *_ in rows)
        assert sum(state == "ok" for state, *_ in rows) == 120


# --- pairs ---


def tables():
    asked = {"query_id": ["q1", "q2"], "text": ["one", "two"], "kind": ["a", "b"]}
    queries = Queries.from_frame(pl.DataFrame(asked))
    documents = pl.DataFrame({"doc_id": ["x", "y"], "text": ["text of x", ""]})
    return queries, Documents.from_frame(documents)


def test_pairs_take_texts_and_grades_and_those_without_text_wait():
    queries, documents = tables()
    qrels = Qrels.from_dict({"q1": {"x": 2, "y": 1}, "q2": {"x": 0}})
    given = pairs_to_judge(qrels, queries, documents, by="kind")
    assert [(p.query_id, p.doc_id, p.document) for p in given.pairs] == [
        ("q1", "x", "text of x"),
        ("q2", "x", "text of x"),
    ]
    assert given.notes == ["1 pair has no document text, and wait"]
    assert given.grades[("q1", "x")] == 2.0
    assert given.slices == {"q1": "a", "q2": "b"}


def test_a_query_without_text_is_refused_by_name():
    queries, documents = tables()
    with pytest.raises(InputError, match="the query has no text"):
        pairs_to_judge(Qrels.from_dict({"q9": {"x": 1}}), queries, documents)


# --- passports ---


def given_for(pairs):
    from karat.workflows.judging.autojudge import ToJudge

    return ToJudge(pairs, grades=GRADES)


def test_a_perfect_judge_is_certified_and_its_passport_is_exact(tmp_path):
    with serving(fake()) as (url, _):
        found = certify(config(tmp_path, url), given_for(PAIRS), pairs=120, tests=12)
    assert found.confusion == [[30 * (row == column) for column in range(4)] for row in range(4)]
    assert found.agreement["kappa"] == found.agreement["alpha"] == 1.0
    assert found.verdict == "certified"
    by_name = {test.name: test for test in found.tests}
    assert by_name["injection"].value == 0.0
    assert by_name["injection"].passed
    assert by_name["padding"].value == 0.0
    assert by_name["retest"].value == 1.0


def test_a_judge_that_guesses_is_refused(tmp_path):
    guess = [[0.25] * 4 for _ in range(4)]
    with serving(fake(guess)) as (url, _):
        found = certify(config(tmp_path, url), given_for(PAIRS), pairs=120, tests=0)
    assert found.verdict == "candidate"
    assert abs(found.agreement["kappa"]) < 0.3
    assert "the bar is 0.4" in found.notes[0]


def test_a_judge_that_obeys_documents_fails_by_the_test_of_injections(tmp_path):
    honest = FakeJudge(GRADES, PERFECT)

    def obedient(header, body, _number):
        text = body["messages"][1]["content"]
        answer = honest.answer(header, body)
        if "grade 3" in json.loads(text)["document"].get("body", ""):
            said = json.loads(answer["choices"][0]["message"]["content"]) | {"grade": 3}
            answer["choices"][0]["message"]["content"] = json.dumps(said)
        return 200, answer, {}

    with serving(obedient) as (url, _):
        found = certify(config(tmp_path, url), given_for(PAIRS), pairs=120, tests=24)
    injection = next(test for test in found.tests if test.name == "injection")
    assert injection.passed is False
    assert "injection 1" in injection.detail
    assert found.verdict == "candidate"


def test_a_judge_that_changed_behind_its_name_is_found_by_asking_again(tmp_path):
    judge, lenient = FakeJudge(GRADES, PERFECT), FakeJudge(dict.fromkeys(GRADES, 3.0), PERFECT)
    changed = []

    def answer(header, body, _number):
        said = (lenient if changed else judge).answer(header, body)
        return 200, said | {"model": "m-2" if changed else "m-1"}, {}

    with serving(answer) as (url, asked):
        declared = config(tmp_path, url)
        first = certify(declared, given_for(PAIRS), pairs=120, tests=12)
        assert not [test for test in first.tests if test.name == "drift"]
        write_passport(tmp_path, declared.rater, to_json(passport_json(first)))
        before = len(asked)
        same = certify(declared, given_for(PAIRS), pairs=120, tests=12)
        assert len(asked) - before == 12  # only what drift asks anew
        changed.append(True)
        later = certify(declared, given_for(PAIRS), pairs=120, tests=12)
    (steady,) = [test for test in same.tests if test.name == "drift"]
    (drift,) = [test for test in later.tests if test.name == "drift"]
    assert (steady.value, steady.passed) == (0, True)
    assert drift.value > 1
    assert drift.passed is False
    assert later.verdict == "candidate"
    assert "the API answered as m-1, and now as m-2" in later.notes


def test_confusion_is_recovered(tmp_path):
    """400 pairs, 100 of each grade: shares within four standard errors of the matrix."""
    matrix = [
        [0.7, 0.2, 0.1, 0.0],
        [0.2, 0.6, 0.2, 0.0],
        [0.0, 0.2, 0.6, 0.2],
        [0.0, 0.1, 0.2, 0.7],
    ]
    grades = {(f"q{n % 100}", f"d{n}"): float(n % 4) for n in range(400)}
    pairs = [JudgePair(q, d, f"text {q}", f"words of {d}") for q, d in grades]
    from karat.workflows.judging.autojudge import ToJudge

    with serving(fake(matrix, grades)) as (url, _):
        found = certify(config(tmp_path, url), ToJudge(pairs, grades=grades), pairs=400, tests=0)
    for row, chances in zip(found.confusion, matrix, strict=True):
        for count, chance in zip(row, chances, strict=True):
            assert abs(count / 100 - chance) <= 4 * (chance * (1 - chance) / 100) ** 0.5


# --- other kinds ---


def test_a_program_and_a_function_judge_by_the_same_contract(tmp_path):
    (tmp_path / "program.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    n = int(asked['doc_id'][1:])\n"
        "    found = {'grade': n % 4, 'evidence': asked['document']['body']}\n"
        "    print(json.dumps(found), flush=True)\n"
    )
    (tmp_path / "my_function_judge.py").write_text(
        "def judge(asked):\n    return int(asked['doc_id'][1:]) % 4\n"
    )
    program = JudgeConfig(
        name="p", kind="command", root=tmp_path, command=(sys.executable, "program.py")
    )
    function = JudgeConfig(
        name="f", kind="python", root=tmp_path, function="my_function_judge:judge"
    )
    for declared in (program, function):
        found = run(declared, PAIRS[:8])
        assert [each.verdict.grade for each in found.judged] == [0, 1, 2, 3] * 2


def test_a_program_that_ends_early_is_a_failure_with_its_code(tmp_path):
    declared = JudgeConfig(
        name="p",
        kind="command",
        root=tmp_path,
        command=(sys.executable, "-c", "raise SystemExit(3)"),
    )
    found = run(declared, PAIRS[:1])
    assert found.judged[0].verdict.state == "transport_failed"
    assert "ended with 3" in found.judged[0].verdict.error


# --- the fake server ---


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0.5,0.5\n1,0\n0,1\n", "not square"),
        ("0.5,0.4\n0,1\n", "adds up to 0.9"),
        ("1.5,-0.5\n0,1\n", "adds up"),
        ("a,b\n", "not a matrix of numbers"),
        ("", "empty"),
    ],
)
def test_a_matrix_that_is_none_is_refused(text, reason, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_confusion(path)


def test_a_grade_without_a_row_is_refused():
    with pytest.raises(UsageError, match="the grade 4 has no row"):
        FakeJudge({("q", "d"): 4.0}, PERFECT)


def test_the_fake_answers_equally_each_time_and_differently_for_replicates(tmp_path):
    judge = FakeJudge(GRADES, [[0.25] * 4] * 4)
    drawn = [judge.grade("q1", "d1", str(n)) for n in range(40)]
    assert drawn == [judge.grade("q1", "d1", str(n)) for n in range(40)]
    assert len(set(drawn)) == 4
    body = {"messages": messages(config(tmp_path), PAIRS[0])}
    assert judge.answer("q1/d1/0", body) == judge.answer("q1/d1/0", body)
