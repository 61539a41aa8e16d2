"""The command line: what becomes of errors, and of readers that have enough."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.cli.main import main
from karat.cli.offline import measures
from karat.errors import KaratError

Typed = Callable[..., tuple[int, str, str]]
DEEP = pytest.mark.deep


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["karat", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        code = stop.value.code
        assert isinstance(code, int)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with qrels and a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n")
    (tmp_path / "bm25.txt").write_text("q1 Q0 a 1 3 t\nq1 Q0 b 2 1 t\nq2 Q0 a 1 1 t\n")
    return tmp_path


def test_help_names_every_command(typed: Typed) -> None:
    code, out, err = typed("--help")
    assert (code, err) == (0, "")
    for name in ("demo", "evaluate", "explain", "lint", "measures"):
        assert f"\n  {name} " in out
    assert typed("-h")[:2] == (0, out)


@pytest.mark.parametrize("command", ["demo", "evaluate", "explain", "lint", "measures"])
def test_every_command_has_help(command: str, typed: Typed) -> None:
    code, out, _ = typed(command, "--help")
    assert code == 0
    assert out.startswith(f"Usage: karat {command} ")


def test_version(typed: Typed) -> None:
    try:
        version = importlib.metadata.version("karat")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("karat is not installed here, only on the path")
    assert typed("--version") == (0, f"karat {version}\n", "")


def test_nothing_typed_shows_the_help_and_is_no_success(typed: Typed) -> None:
    code, out, err = typed()
    assert (code, out) == (2, "")
    assert "Commands:" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "evalute qrels.txt bm25.txt",
            "no such command 'evalute'; did you mean evaluate?\n  fix: karat --help",
        ),
        ("evaluate", "missing argument 'QRELS'\n  fix: karat evaluate --help"),
        ("evaluate qrels.txt", "missing argument 'RUN…'"),
        ("compare qrels.txt bm25.txt", "QRELS, BASELINE and at least one CANDIDATE are needed"),
        (
            "evaluate qrels.txt bm25.txt --formt csv",
            "no such option: --formt; did you mean --format?",
        ),
        ("evaluate qrels.txt bm25.txt --format xml", "'xml' is not one of"),
        ("evaluate qrels.txt bm25.txt --format jsno", "did you mean json?\n  fix: karat evaluate"),
        ("evaluate qrels.txt bm25.txt --depth ten", "'ten' is not a whole number"),
        ("compare qrels.txt bm25.txt bm25.txt --review 1e", "'1e' is not a whole number"),
        ("evaluate qrels.txt bm25.txt --depth 0", "depth must be 1 or more, got 0"),
        ("evaluate qrels.txt bm25.txt --rel 0", "rel=0 is not a number above 0"),
        ("evaluate qrels.txt bm25.txt --rel nan", "rel=nan is not a number above 0"),
        ("evaluate qrels.txt bm25.txt --seed -1 --interval bca", "seed must be 0 or more, got -1"),
        ("evaluate qrels.txt bm25.txt -m nDGC@10", "did you mean nDCG"),
        ("evaluate qrels.txt bm25.txt -m nDCG@0", "is not a rank from 1"),
        ("evaluate qrels.txt bm25.txt -m P", "fix: P@10"),
        ("evaluate qrels.txt bm26.txt", "did you mean bm25.txt?"),
        ("evaluate qrel.txt bm25.txt", "did you mean qrels.txt?"),
        ("evaluate qrels.txt .", "expected a run file"),
        ("evaluate . bm25.txt", "not a BEIR folder"),
        ("evaluate bm25.txt qrels.txt", "expected a run"),
        ("evaluate qrels.txt bm25.txt --queries none.csv", "none.csv: there is no such file"),
        ("evaluate qrels.txt bm25.txt --by kind", "fix: add the queries"),
        ("evaluate qrels.txt bm25.txt --collapse parent_id", "fix: --documents FILE"),
        ("evaluate qrels.txt bm25.txt --compat trec_eval", "did you mean trec_eval-9"),
        ("evaluate qrels.txt bm25.txt --input-format tsvv", "did you mean tsv?"),
        ("evaluate qrels.txt bm25.txt --measures-from nowhere", "No module named 'nowhere'"),
        ("evaluate qrels.txt bm25.txt --measures-from ./mine.py", "without .py"),
        ("explain qrels.txt bm25.txt", "missing argument 'QUERY_ID'"),
        ("explain qrels.txt bm25.txt q3", "did you mean q"),
        ("explain qrels.txt bm25.txt q1 -m nDGC", "did you mean nDCG"),
        ("measures nDGC", "did you mean nDCG"),
        ("measures --for legl", "did you mean legal?"),
    ],
)
def test_a_users_mistake_is_2_without_a_traceback(
    words: str, said: str, typed: Typed, files: Path
) -> None:
    assert files.is_dir()
    code, out, err = typed(*words.split())
    assert (code, out) == (2, ""), err
    assert said in err
    assert err.startswith("karat: ")
    assert "Traceback" not in err


def test_a_bad_line_is_named(typed: Typed, files: Path) -> None:
    (files / "bm25.txt").write_text("q1 Q0 a 1 3 t\nq1 Q0 b 2 high t\n")
    code, _, err = typed("evaluate", "qrels.txt", "bm25.txt")
    assert code == 2
    assert err.startswith("karat: bm25.txt, line 2: ")


def test_an_unexpected_exception_is_4_with_a_traceback(
    typed: Typed, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.is_dir()

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("karat.workflows.offline.evaluate.evaluate", broken)
    code, out, err = typed("evaluate", "qrels.txt", "bm25.txt")
    assert (code, out) == (4, "")
    assert "Traceback" in err
    assert err.endswith("karat: this is a bug in karat (ZeroDivisionError)\n")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "\nkarat: stopped\n"),  # after the ^C of the terminal
        (MemoryError(), 4, "karat: out of memory\n"),
        (KaratError("it broke"), 4, "karat: it broke\n"),
    ],
)
def test_other_ends(
    error: BaseException,
    code: int,
    said: str,
    typed: Typed,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert files.is_dir()

    def stopped(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("karat.workflows.offline.evaluate.evaluate", stopped)
    assert typed("evaluate", "qrels.txt", "bm25.txt") == (code, "", said)


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of POSIX")
@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "qrels.txt", "bm25.txt", "-q", "-f", "table"],
        pytest.param(["evaluate", "qrels.txt", "bm25.txt", "-q", "-f", "csv"], marks=DEEP),
        pytest.param(["evaluate", "qrels.txt", "bm25.txt", "-q", "-f", "trec"], marks=DEEP),
    ],
    ids=lambda arguments: arguments[-1],
)
@pytest.mark.deep  # as test_streams.py does it
def test_a_reader_that_has_enough_is_no_failure(arguments: list[str], files: Path) -> None:
    # More than the 64 KiB that a pipe holds.
    (files / "qrels.txt").write_text("".join(f"query{i} 0 a 1\n" for i in range(900)))
    (files / "bm25.txt").write_text("".join(f"query{i} Q0 a 1 1 t\n" for i in range(900)))
    with subprocess.Popen(
        [sys.executable, "-m", "karat", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=files,
        env=os.environ | {"PYTHONPATH": str(Path(karat.__file__).parents[1])},
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait() == 0, said
    assert "Traceback" not in said
    assert "Broken" not in said


def test_a_panic_in_rust_is_a_bug_and_no_verdict(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(**_: object) -> None:
        raise pl.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    assert not issubclass(pl.exceptions.PanicException, Exception)
    monkeypatch.setattr(measures.measures, "callback", panic)
    code, _, said = typed("measures")
    assert code == 4
    assert said.endswith("karat: this is a bug in karat (PanicException)\n")
