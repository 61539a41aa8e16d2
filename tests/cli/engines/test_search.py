"""``karat search``: a search function of one's own is asked, as somebody types it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat import formats

Typed = Callable[..., Any]  # conftest.py

SEARCH = """
import asyncio

PAGES = {"a": "open a file", "b": "join lists", "c": "sort a list", "d": "open lists"}
ANSWERED = [0]


def search(text):
    words = set(text.split())
    if "boom" in words:
        raise ConnectionError("refused")
    hits = [(page, len(words & set(about.split()))) for page, about in PAGES.items()]
    return sorted((hit for hit in hits if hit[1]), key=lambda hit: -hit[1])


async def later(text):
    await asyncio.sleep(0)
    return search(text)


def flaky(text):
    ANSWERED[0] += 1
    if ANSWERED[0] % 2:
        raise TimeoutError("busy")
    return search(text)


def down(text):
    raise ValueError("no index")


def odd(text):
    return 3


def two(text, k):
    return []


def stopped(text):
    raise KeyboardInterrupt


class Engine:
    def ask(self, text):
        return ["a", "b", "c"]


engine = Engine()
WHAT = 3
"""
QUERIES = {"q1": "open file", "q2": "nothing here", "q3": "boom", "q4": "join lists"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of search functions and a file of queries."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_search", raising=False)
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "my_search.py").write_text(SEARCH, encoding="utf-8")
    rows = ({"query_id": query, "text": text} for query, text in QUERIES.items())
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize("function", ["search", "later"])
@pytest.mark.parametrize("ending", ["jsonl", "parquet", "trec", "csv.gz", "json"])
def test_every_format_keeps_what_became_of_each_query(
    typed: Typed, folder: Path, ending: str, function: str
) -> None:
    line = f"search --python my_search:{function} queries.jsonl -o run.{ending} --concurrency 2"
    done = typed(f"{line} --about index=docs-7 --about parameters={{k}}")
    assert "4 queries asked: 2 ok, 1 empty, 1 failed; p50" in done.out
    assert "1 query failed, first q3: ConnectionError: refused (my_search.py, line" in done.out
    assert done.out.endswith(f"written to run.{ending}\nnext: karat evaluate QRELS run.{ending}\n")
    run = formats.read_run(folder / f"run.{ending}")
    assert run.name == "run"
    assert run.to_dict()["q1"] == {"a": 2.0, "d": 1.0}
    states = dict(run.answers.select("query_id", "state").iter_rows())
    assert states == {"q1": "ok", "q2": "empty", "q3": "failed", "q4": "ok"}
    assert run.answers["latency_us"].null_count() == 0
    assert run.about["engine"] == f"my_search:{function}"
    assert (run.about["index"], run.about["parameters"]) == ("docs-7", "{k}")
    assert "name" not in run.about
    own = "about" in formats.FORMATS[ending.partition(".")[0]].keeps
    assert ("keep the two files together" in " ".join(done.out.split())) is not own


def test_json_says_all_of_it(typed: Typed, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", "1a2b3c")
    line = "search --python my_search:flaky queries.jsonl -o run.jsonl --retries 1 -k 1"
    told = json.loads(typed(f"{line} --name nightly --format json").out)
    assert {key: told[key] for key in ("run", "file", "queries", "ok", "empty", "failed")} == {
        "run": "nightly",
        "file": "run.jsonl",
        "queries": 4,
        "ok": 2,
        "empty": 1,
        "failed": 1,
    }
    assert [reason["query_id"] for reason in told["reasons"]] == ["q3"]
    assert told["latency"]["n"] == 4
    assert told["about"]["name"] == "nightly"
    assert (told["about"]["commit"], told["about"]["depth"]) == ("1a2b3c", "1")
    assert told["next"] == "karat evaluate QRELS run.jsonl"
    # flaky fails each first try, and is asked again: 3 queries answered at the second.
    assert any(note.startswith("3 queries answered only after a retry") for note in told["notes"])
    cut = formats.read_run(folder / "run.jsonl").to_dict()
    assert cut == {"q1": {"a": 2}, "q2": {}, "q4": {"b": 2}}


def test_a_method_and_standard_output(typed: Typed, folder: Path) -> None:
    done = typed("search --python my_search:engine.ask queries.jsonl -o -")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert lines[0]["about"]["engine"] == "my_search:engine.ask"
    assert len(lines) == 1 + 4 * 3
    assert done.err.startswith("4 queries asked: 4 ok, 0 empty, 0 failed")


@pytest.mark.parametrize("ending", ["jsonl", "trec"])
def test_its_time_dates_the_documents(typed: Typed, folder: Path, ending: str) -> None:
    typed(f"search --python my_search:search queries.jsonl -o run.{ending}")
    (folder / "qrels").write_text("q1 0 a 1\nq4 0 b 1\n")
    # Whenever this runs: a is from before it, b from the year 9999.
    (folder / "documents.csv").write_text("doc_id,updated_at\na,2020-01-01\nb,9999-01-01\n")
    line = f"evaluate qrels run.{ending} -m RR --documents documents.csv --by relevant.age"
    slices = json.loads(typed(f"{line} --interval none --format json").out)["slices"]
    assert [(row["slice"], row["n"]) for row in slices] == [
        ("over a year", 1),
        ("after the query", 1),
    ]


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        ("--python my_search:down", 4, "my_search.py, line 29: my_search:down answered none of 4"),
        ("--python my_search:odd", 4, "what came back: 3\n  fix: return ids"),
        ("--python my_search:two", 2, "my_search.py, line 36: my_search:two(text, k) cannot be"),
        ("--python my_search:WHAT", 2, "is of type int, not a function"),
        ("--python my_search:serch", 2, "no 'serch'; did you mean my_search:search?"),
        ("--python my_serch:search", 2, "did you mean my_search?"),
        ("--python my_search.py:search", 2, "fix: --python my_search:search"),
        ("--python search", 2, "'search' is not module:function"),
        (
            "--python broken:search",
            2,
            "broken.py, line 2: the module broken cannot be imported",
        ),
        ("--python broken2:search", 2, "broken2.py, line 1: SyntaxError"),
        (
            "--python script:search",
            2,
            "script.py, line 1: the module script cannot be imported: it",
        ),
        ("--python token:search", 2, "another module 'token' shadows"),
        ("", 2, "no search engine\n  fix: karat search ENGINE"),
        ("--python my_search:search --about index", 2, "'index' is not KEY=VALUE"),
        ("--python my_search:search -k 0", 2, "depth is 0, not a whole number from 1"),
        (
            "--python my_search:search --concurrency 0",
            2,
            "concurrency must be a whole number from 1, got 0",
        ),
        ("--python my_search:search -o nowhere/run.trec", 2, "nowhere/run.trec: cannot be written"),
        ("--python my_search:search -o run.doc", 2, "cannot tell the format for run"),
        ("--python my_search:search -o . --output-format csv", 2, "expected a file, got a folder"),
        ("--python my_search:search -o - --output-format trec", 2, "cannot store which queries"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_there_stays(
    typed: Typed, folder: Path, more: str, code: int, says: str
) -> None:
    for name, text in {
        "broken": "\nimport nowhere_at_all\n",
        "broken2": "def search(:\n",
        "script": "import sys; sys.exit(1)\n",
        "token": "def search(text): return []\n",
    }.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "run.trec").write_text("q1 Q0 a 1 1 old\n")
    there = sorted(path.name for path in folder.iterdir())
    done = typed(f"search queries.jsonl -o run.trec {more}", code=code)
    assert says in done.err
    assert "Traceback" not in done.err
    left = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert sorted(left) == there
    assert (folder / "run.trec").read_text() == "q1 Q0 a 1 1 old\n"


def test_ids_that_the_format_cannot_hold_are_found_before_asking(
    typed: Typed, folder: Path
) -> None:
    (folder / "odd.jsonl").write_text('{"query_id": "a b", "text": "open file"}\n')
    done = typed("search --python my_search:flaky odd.jsonl -o run.trec", code=2)
    assert "the query_id 'a b' cannot be stored in a TREC run" in done.err
    assert sys.modules["my_search"].ANSWERED == [0]


def test_what_was_asked_is_not_lost_when_a_format_cannot_hold_it(
    typed: Typed, folder: Path
) -> None:
    (folder / "spaced.py").write_text("def search(text):\n    return ['a b']\n")
    done = typed("search --python spaced:search queries.jsonl -o run.trec", code=2)
    assert "run.trec: the doc_id 'a b' cannot be stored in a TREC run" in done.err
    assert "fix: the run was written to run.trec.jsonl instead" in done.err
    assert len(formats.read_run(folder / "run.trec.jsonl")) == 4
    assert not (folder / "run.trec").exists()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"query_id": "q1"}, "the queries have no text to search for"),
        ({"query_id": "q1", "text": ""}, "no text"),
    ],
)
def test_queries_without_text_are_named(
    typed: Typed, folder: Path, row: dict[str, str], says: str
) -> None:
    (folder / "bare.jsonl").write_text(json.dumps(row) + "\n")
    done = typed("search --python my_search:search bare.jsonl -o run.trec", code=2)
    assert says in done.err
    assert "(query q1)" in done.err


def test_the_queries_of_the_workspace_go_on_to_the_pool(
    typed: Typed, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not in a workspace" in typed("search --python my_search:search -o r.trec", code=2).err
    typed("init .")
    asking = "search --python my_search:search -o"
    assert "the golden set has no queries yet" in typed(f"{asking} r.trec", code=2).err
    (folder / "log.csv").write_text("query,count\nopen file,9\njoin lists,5\n")
    typed("golden choose log.csv --size 2")
    below = folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)  # the module is found from the workspace's folder
    monkeypatch.delitem(sys.modules, "my_search", raising=False)
    done = typed(f"{asking} r.trec")
    assert "2 queries asked: 2 ok" in done.out
    assert done.out.endswith("next: karat golden pool r.trec\n")
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{doc}", "text": "{doc}"}}\n' for doc in "abcd")
    )
    typed("golden import ../corpus.jsonl")
    # open file: a, d (open lists); join lists: b, d.
    assert "4 pairs of 2 queries chosen, 4 of them new" in typed("golden pool r.trec").out


def test_a_golden_set_is_evaluated_next(typed: Typed, folder: Path) -> None:
    golden = [{"query": "open file", "relevant_docs": ["a"]}]
    (folder / "golden.json").write_text(json.dumps(golden))
    done = typed("search --python my_search:search golden.json -o r.parquet")
    assert done.out.endswith("next: karat evaluate golden.json r.parquet\n")
    assert "1.0000" in typed("evaluate golden.json r.parquet -m RR").out


def test_ctrl_c_writes_nothing(typed: Typed, folder: Path) -> None:
    done = typed("search queries.jsonl --python my_search:stopped -o run.trec", code=130)
    assert done.err.strip() == "karat: stopped"
    assert not list(folder.glob("*run*"))


def test_exact_search_is_compared_and_drawn(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "near_by_parts.py").write_text(
        "def search(text, ef=1):\n    return ['d0', 'd1', 'd2', 'd3'][4 - ef:]\n"
    )
    (tmp_path / "karat.toml").write_text(
        '[engine.near]\nkind = "python"\nfunction = "near_by_parts:search"\n'
        "params = { ef = 1 }\nexact = { ef = 4 }\n"
    )
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,a\nq2,b\n")
    asked = "search near queries.csv --exact --param ef=1,2,4 -k 4"
    done = typed(f"{asked} --plot recall.svg")
    assert "near, exact with ef=4" in done.out
    assert "ef=1: 2 queries below 1, lowest q1 (0.25), q2 (0.25)" in done.out
    assert (tmp_path / "recall.svg").read_text(encoding="utf-8").startswith("<svg")
    found = json.loads(typed(f"{asked} --format json").out)
    assert [row["recall"] for row in found["rows"]] == [None, 0.25, 0.5, 1.0]
    assert ".svg" in typed(f"{asked} --plot recall.png", code=2).err
    assert "writes no run" in typed(f"{asked} -o run.jsonl", code=2).err
    assert "missing option '-o' / '--out'" in typed("search near queries.csv", code=2).err
