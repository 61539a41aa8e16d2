"""``karat lint`` at the command line: exit codes and formats."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from karat.cli.main import main

SOUND = "q1 0 d1 1\nq1 0 d2 0\n"
FAULTY = "q1 0 d1 1\nq1 0 100%\nq1 0 d3 -1\n"
REMARK = "q1 0 d1 1\nq1 0 d2 0"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with sound.txt, faulty.txt and remark.txt."""
    for name, text in (("sound", SOUND), ("faulty", FAULTY), ("remark", REMARK)):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return tmp_path


def karat(*arguments: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run karat lint in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setenv("COLUMNS", "80")
        patch.setattr(sys, "argv", ["karat", "lint", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8"))
        with pytest.raises(SystemExit) as stop:
            main()
    code = int(stop.value.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["sound.txt"], 0),
        (["sound.txt", "--strict"], 0),
        (["faulty.txt"], 0),
        (["faulty.txt", "--strict"], 1),
        (["faulty.txt", "--strict", "--format", "json"], 1),
        (["remark.txt", "--strict"], 0),
        (["absent.txt"], 2),
        (["sound.txt", "--format", "xml"], 2),
        (["sound.txt", "--role", "sound.txt=judgments"], 2),
        ([], 2),
    ],
)
def test_exit_codes(arguments: list[str], code: int, folder: Path) -> None:
    done = karat(*arguments, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_the_table_starts_with_a_verdict_and_fits(folder: Path) -> None:
    done = karat("faulty.txt", "sound.txt", cwd=folder)
    first, *rest = done.stdout.splitlines()
    assert first == "1 error, 1 warning in 2 files"
    assert max(map(len, rest)) <= 80
    assert "missing-grade  line 2" in done.stdout
    assert karat("sound.txt", cwd=folder).stdout.startswith(
        "nothing wrong in 1 file: 1 query, 2 rows\n"
    )


def test_json(folder: Path) -> None:
    found = json.loads(karat("faulty.txt", "--format", "json", cwd=folder).stdout)
    assert found["counts"] == {"error": 1, "warning": 1, "info": 0}
    assert found["files"][0]["role"] == "qrels"
    codes = {finding["code"]: finding["lines"] for finding in found["findings"]}
    assert codes == {"missing-grade": [2], "negative-grade": [3]}


def test_github_annotations_are_escaped(folder: Path) -> None:
    (folder / "a,b.txt").write_text(FAULTY, encoding="utf-8")
    first, second, verdict = karat("a,b.txt", "-f", "github", cwd=folder).stdout.splitlines()
    assert first.startswith(
        "::error file=a%2Cb.txt,line=2,title=karat missing-grade::no grade%3A"[:-4]
    )
    assert "%0Afor example: q1 0 100%25%0A" in first
    assert second.startswith("::warning file=a%2Cb.txt,line=3,")
    assert verdict == "1 error, 1 warning in 1 file"


def test_standard_input(folder: Path) -> None:
    done = karat("-", cwd=folder, given=FAULTY)
    assert "standard input  qrels (trec)" in done.stdout
    scattered = "q1 Q0 d1 1 3 t\nq2 Q0 d1 1 9 t\nq1 Q0 d1 2 2 t\n"
    assert "duplicate-document  line 3" in karat("-", cwd=folder, given=scattered).stdout


def test_a_file_with_an_escape_sequence_does_not_reach_the_terminal(folder: Path) -> None:
    (folder / "evil.txt").write_bytes(b"q1 0 \x1b]0;gotcha\x07 -\nq1 0 d1 1\n")
    done = karat("evil.txt", cwd=folder)
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
