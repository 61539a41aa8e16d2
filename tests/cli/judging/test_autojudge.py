"""karat autojudge, from a declaration to an interval, against the fake server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from karat.cli.main import karat, main

MATRIX = "0.9,0.1,0,0\n0.1,0.8,0.1,0\n0,0.1,0.8,0.1\n0,0,0.1,0.9\n"
FILES = ["--qrels", "truth.txt", "--queries", "queries.csv", "--documents", "documents.jsonl"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A folder with files, a judge, and the fake server in a process of its own."""
    folder = tmp_path_factory.mktemp("judge")
    queries, documents, truth, people, ranked = ["query_id,text"], [], [], [], []
    for n in range(24):
        queries.append(f"q{n},question {n}")
        for m in range(5):
            documents.append(json.dumps({"doc_id": f"d{n}.{m}", "text": f"answer {m} to {n}"}))
            truth.append(f"q{n} 0 d{n}.{m} {(n + m) % 4}")
            ranked.append(f"q{n} Q0 d{n}.{m} {m + 1} {5 - m} r")
        people += truth[-5:] if n % 3 == 0 else []
    for name, lines in (
        ("queries.csv", queries),
        ("documents.jsonl", documents),
        ("truth.txt", truth),
        ("people.txt", people),
        ("run.trec", ranked),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "errors.csv").write_text(MATRIX)
    command = ["autojudge", "fake-server", "--qrels", "truth.txt", "--confusion", "errors.csv"]
    process = subprocess.Popen(
        [Path(sys.executable).parent / "karat", *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    (folder / "karat.toml").write_text(
        f'[judge.fake]\nkind = "chat"\n{url}\nmodel = "m"\n'
        "prices = { input = 0.15, output = 0.6 }\n"
    )
    yield folder
    process.kill()
    process.communicate()


@pytest.fixture
def told(server, monkeypatch):
    monkeypatch.chdir(server)

    def tell(*arguments, code=0):
        done = CliRunner().invoke(karat, arguments, standalone_mode=False)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert (done.return_value or 0) == code, done.output
        return done.output

    return tell


def test_from_a_plan_to_an_interval(told, server):
    assert "120 requests for 120 pairs" in told("autojudge", "run", "fake", *FILES, "--dry-run")
    ran = json.loads(
        told("autojudge", "run", "fake", *FILES, "-o", "grades.jsonl", "--format", "json")
    )
    assert ran["states"] == {"ok": 120}
    assert ran["asked"] == ran["cost"]["attempts"] == 120
    assert ran["cost"]["dollars"] > 0
    assert "120 known before" in told("autojudge", "run", "fake", *FILES)
    lines = (server / "grades.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["source"] == "llm"
    by_file, by_name = (
        json.loads(
            told("evaluate", "people.txt", "run.trec", "-m", "nDCG@3", "--format", "json",
                 "--machine-grades", judge)
        )["machine_grades"]
        for judge in ("grades.jsonl", "fake")
    )  # fmt: skip
    bought = {"dollars_queries", "dollars_effective"}  # a file says nothing of prices
    (row,) = by_name
    assert by_file == [{name: None if name in bought else row[name] for name in row}]
    assert (row["judged"], row["machine_only"], row["unit"]) == (8, 16, "query")
    assert row["ci_high"] - row["ci_low"] < row["people_high"] - row["people_low"]
    shown = told("evaluate", "people.txt", "run.trec", "-m", "nDCG@3", "--machine-grades", "fake")
    assert "(uncertified); people judged 8 queries" in " ".join(shown.split())
    assert not row["certified"]
    assert "Queries for $10" in shown
    assert row["dollars_queries"] == pytest.approx(10 / (ran["cost"]["per_usable"] * 5))


def test_a_passport_is_made_kept_and_shown(told):
    found = json.loads(
        told("autojudge", "certify", "fake", *FILES, "--tests", "6", "--format", "json")
    )
    assert set(found) >= {"judge", "agreement", "confusion", "states", "cost", "tests", "verdict"}
    keys = {"kappa", "kappa_low", "kappa_high", "linear", "quadratic", "alpha", "ac1"}
    assert set(found["agreement"]) >= keys
    assert sum(map(sum, found["confusion"])) == 120
    assert set(found["tests"][0]) >= {"name", "value", "ci_low", "ci_high", "passed"}
    assert found["verdict"] == "certified"
    assert json.loads(told("autojudge", "show", "fake", "--format", "json")) == found
    shown = told("autojudge", "show", "fake")
    assert shown.rstrip().endswith("certified")
    (row,) = json.loads(told("autojudge", "list", "--format", "json"))
    assert row["passport"] == "certified"
    assert "certified" in told("autojudge", "list")


def test_runs_are_put_in_order_by_both(told, server):
    lines = [line.split() for line in (server / "run.trec").read_text().splitlines()]
    text = "".join(f"{q} Q0 {d} {6 - int(rank)} {rank} r2\n" for q, _, d, rank, *_ in lines)
    (server / "run2.trec").write_text(text)
    said = ["--run", "run.trec", "--run", "run2.trec", "--measure", "nDCG@3", "--format", "json"]
    found = json.loads(told("autojudge", "certify", "fake", *FILES, "--tests", "0", *said))
    rows = {row["name"]: row for row in found["tests"]}
    assert rows["bias run2 - run"]["ci_low"] < rows["bias run2 - run"]["value"]
    assert rows["rho"]["value"] > 0.5
    assert found["cost"]["per_effective_query"] > found["cost"]["per_usable"] > 0


def test_doubts_become_chances(told, server):
    told("autojudge", "run", "fake", *FILES)
    said = ["--qrels", "people.txt", "--budget", "20", "-o", "chances.csv", "--format", "json"]
    found = json.loads(told("autojudge", "doubts", "fake", *said))
    drawn = [row for row in found["pairs"] if row["chance"] is not None]
    lines = (server / "chances.csv").read_text().splitlines()
    assert lines[0] == "query_id,doc_id,chance"
    assert len(lines) - 1 == 120
    assert sum(line.endswith(",1.0") for line in lines) == 40  # 8 queries that people judged
    assert 10 <= len(drawn) <= 30
    shown = told("autojudge", "doubts", "fake", "--qrels", "people.txt")
    assert "likely error" in shown


def test_a_bar_that_is_not_reached_is_exit_code_1(told, server):
    text = (server / "karat.toml").read_text()
    (server / "karat.toml").write_text(text + "kappa = 0.99\n")
    try:
        assert "the bar is 0.99" in told("autojudge", "certify", "fake", *FILES, code=1)
    finally:
        (server / "karat.toml").write_text(text)


def test_a_budget_that_is_used_up_is_exit_code_1(told, server):
    text = (server / "karat.toml").read_text()
    (server / "karat.toml").write_text(text + "seed = 2\n")  # another judge, with no grades yet
    try:
        said = told("autojudge", "run", "fake", *FILES, "--budget", "0.002", code=1)
        assert "waiting" in said
        assert "stopped: budget" in said
    finally:
        (server / "karat.toml").write_text(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "fakke", *FILES], "did you mean fake?"),
        (["run", "fake", "--queries", "queries.csv"], "no pairs"),
        (["run", "fake", "--qrels", "truth.txt"], "--queries is missing"),
        (["run", "fake", *FILES, "-o", "g.txt"], "cannot tell the format of grades"),
        (["certify", "fake", *FILES, "--run", "run.trec"], "one run has no order"),
        (["doubts", "fake", "--qrels", "truth.txt", "--queue"], "--queue needs a workspace"),
        (["show", "nobody"], "no judge 'nobody'"),
    ],
)
def test_mistakes_are_named(arguments, said, server, monkeypatch, capsys):
    monkeypatch.chdir(server)
    monkeypatch.setattr(sys, "argv", ["karat", "autojudge", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
