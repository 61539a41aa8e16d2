"""karat demo: a finished folder, a table, and a user's own embedding function."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from karat.cli.main import main
from karat.cli.workspace import demo
from karat.demo import traffic
from karat.web.server import Serving
from karat.workflows.offline import report


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a module in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own_embedding_at_the_prompt", raising=False)
    (tmp_path / "own_embedding_at_the_prompt.py").write_text(
        "def lengths(texts):\n"
        "    return [[len(text), text.count('e')] for text in texts]\n"
        "def too_few(texts):\n"
        "    return lengths(texts)[1:]\n"
    )
    return tmp_path


@pytest.fixture
def small(two_documents: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of two documents, and few users: too few for grades from clicks."""
    for name, value in {"DAYS": 8, "USERS": 50, "SESSIONS": 20.0}.items():
        monkeypatch.setattr(traffic, name, value)


def typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[object, str, str]:
    """Run the command line in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["karat", "demo", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, *capsys.readouterr()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Serving, bool]]:
    """What servers are told, which would not end and are stood in for."""
    told: list[tuple[Serving, bool]] = []
    monkeypatch.setattr(demo, "go", lambda where, *, browser: told.append((where, browser)) or 0)
    return told


@pytest.fixture
def only_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make neither a report nor a workspace, which takes most of the time."""
    monkeypatch.setattr(demo, "_keep", lambda *_: True)
    monkeypatch.setattr(report, "write_report", lambda *_, **__: None)


@pytest.mark.deep  # tests/net compares what it prints
def test_it_shows_three_systems_leaves_a_folder_and_ends_without_a_terminal(
    folder: Path,
    told: list[tuple[Serving, bool]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KARAT_STORE", "sqlite:////a/team.db")
    code, out, err = typed(monkeypatch, capsys)
    assert (code, told) == (0, []), err
    assert "history.jsonl has the history of search, step by step" in out
    assert "serve -w karat-demo" in out
    assert "Why queries of hybrid fail" in out
    assert re.search(
        r"http://127.0.0.1:8000/runs/3/diagnosis/q\d+\?stage=\S+hybrid&baseline=1\n", out
    )
    for name in ("bm25", "semantic", "hybrid"):
        assert f" {name} " in out
        assert (folder / "karat-demo" / "runs" / f"{name}.trec").is_file()
    assert "Writing karat-demo" in err
    page = folder / "karat-demo" / "report.html"
    assert f"The full report, query by query: {page.relative_to(folder)}" in out
    assert "hybrid" in page.read_text(encoding="utf-8")


@pytest.mark.deep
@pytest.mark.usefixtures("small", "only_runs")
def test_it_serves_where_it_is_asked_to(
    folder: Path,
    told: list[tuple[Serving, bool]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KARAT_STORE", "sqlite:////a/team.db")
    monkeypatch.setenv("KARAT_RATER", "anna")
    code, out, err = typed(monkeypatch, capsys, "--serve", "--no-browser", "--port", "0")
    assert code == 0, err
    (where, browser), *_ = told
    assert (where.settings.workspace, browser) == ((folder / "karat-demo").resolve(), False)
    assert (where.settings.accounts, where.settings.owner, where.host) == (
        False,
        "anna",
        "127.0.0.1",
    )
    assert "KARAT_STORE" not in os.environ  # the demo stays out of a team's store
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    typed(monkeypatch, capsys, "--no-serve")
    assert len(told) == 1
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "uvicorn" else 1)
    code, out, err = typed(monkeypatch, capsys, "--serve")
    assert (code, len(told)) == (0, 1), err
    assert "Not served: karat serve needs the package uvicorn" in out


@pytest.mark.deep
@pytest.mark.usefixtures("small")
def test_without_the_packages_of_a_page_it_says_how_to_get_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_keep", lambda *_: True)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, out, err = typed(monkeypatch, capsys)
    assert code == 0, err
    assert "fix: pip install 'karat[" in out
    assert not (folder / "karat-demo" / "report.html").exists()


@pytest.mark.usefixtures("small", "only_runs")
def test_a_users_own_function_is_one_argument(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    function = "own_embedding_at_the_prompt:lengths"
    code, out, err = typed(monkeypatch, capsys, "mine", "--embed", function)
    assert code == 0, err
    assert " lengths " in out
    assert "semantic" not in out
    assert (folder / "mine" / "runs" / "lengths.trec").is_file()
    assert f"{function} embeds documents 1 to 2 of 2" in err


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("own_embedding_at_the_prompt.py:lengths", "without .py"),
        ("own_embedding_at_the_prompt:length", "did you mean lengths?"),
        ("own_embedding_at_the_prompt", "is not of the form MODULE:FUNCTION"),
        ("", "is not of the form MODULE:FUNCTION"),
        ("own_embedding_at_the_prompt:too_few", ":too_few returned the shape ("),
    ],
)
def test_a_mistake_is_2_without_a_traceback_or_a_folder(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    function: str,
    said: str,
) -> None:
    code, out, err = typed(monkeypatch, capsys, "mine", "--embed", function)
    assert (code, out) == (2, ""), err
    assert said in err
    assert "Traceback" not in err
    assert not (folder / "mine").exists()
