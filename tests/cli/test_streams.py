"""What reads a command's output, or cannot hold it, never changes its verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.choosing import deep_but

import karat
from karat.cli.main import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX")

START = "from karat.cli.main import main; main()"
GATE = ["gate", "--policy", "gate.toml", "qrels", "old.trec"]
WORSE = [*GATE, "new.trec"]
Ends = Callable[..., int]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run, and one of which RR is half, for 30 queries; and a run with a broken line."""
    ids = [f"q{n:02}" for n in range(30)]
    (tmp_path / "qrels").write_text("".join(f"{query} 0 good 1\n" for query in ids))
    for name, order in (("old", ("good", "x")), ("new", ("x", "good"))):
        lines = [
            f"{query} Q0 {doc} {rank} {9 - rank} {name}\n"
            for query in ids
            for rank, doc in enumerate(order, start=1)
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    (tmp_path / "gate.toml").write_text('[[rule]]\nmeasure = "RR"\nmax_drop = "5%"\n')
    (tmp_path / "broken.trec").write_text("q1 Q0 a 1 9 t\nq1 Q0 b\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """The exit code of a command that writes to a pipe that has no reader, or to a device."""

    def run(arguments: Sequence[str], device: str = "", stream: str = "stdout") -> int:
        if device:
            number = os.open(device, os.O_WRONLY)
        else:
            reader, number = os.pipe()
            os.close(reader)
        with os.fdopen(number, "w", encoding="utf-8") as there, monkeypatch.context() as patch:
            patch.setattr(sys, stream, there)
            patch.setattr(sys, "argv", ["karat", *arguments])
            # What guards the streams replaces both.
            other = "stderr" if stream == "stdout" else "stdout"
            patch.setattr(sys, other, getattr(sys, other))
            with pytest.raises(SystemExit) as stop:
                main()
        assert isinstance(stop.value.code, int)
        return stop.value.code

    return run


COMMANDS = [
    *((1, [*WORSE, "-f", name]) for name in ("table", "json", "junit", "github", "md")),
    (0, [*GATE, "old.trec"]),
    *((2, ["gate", "--policy", "none.toml", *GATE[3:], "-f", name]) for name in ("table", "json")),
    *((1, ["lint", "--strict", "broken.trec", "-f", name]) for name in ("table", "json", "github")),
    *((0, ["evaluate", "qrels", "old.trec", "-f", name]) for name in ("table", "csv", "trec")),
    (0, ["fuse", "old.trec", "new.trec"]),
    (0, ["--help"]),
    (2, []),
    (2, ["nonsense"]),
]


# A format of each command, and both ends of a gate.
FIRST = [["table"], ["old.trec"], ["new.trec"], ["--help"], [], ["nonsense"]]


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        pytest.param(
            code,
            line,
            marks=() if line[-1:] in FIRST else pytest.mark.deep,
            id=f"{code}-{' '.join(line[-3:])}",
        )
        for code, line in COMMANDS
    ],
)
def test_a_reader_that_has_gone_changes_no_exit_code(
    code: int, arguments: list[str], ends: Ends, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends(arguments) == code
    assert ends(arguments, stream="stderr") == code
    said = capsys.readouterr().err
    assert "Broken" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", deep_but(["table"], ["table", "json", "junit", "github", "md"]))
@pytest.mark.parametrize("run", ["old.trec", "new.trec"])
def test_a_verdict_that_cannot_be_written_is_an_error(
    name: str, run: str, ends: Ends, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends([*GATE, run, "-f", name], "/dev/full") == 4
    assert capsys.readouterr().err == "karat: standard output: No space left on device\n"
    assert ends([*GATE, run, "-f", name], "/dev/full", "stderr") == (run == "new.trec")


@pytest.mark.parametrize(("device", "code"), [("", 1), ("/dev/full", 4)])
def test_the_rest_is_done_all_the_same(device: str, code: int, ends: Ends, files: Path) -> None:
    kept = ["--history", "h.jsonl", "--report", "r.html"]
    assert ends([*WORSE, *kept], device) == code
    assert (files / "h.jsonl").read_text().count("\n") == 1
    assert "</html>" in (files / "r.html").read_text(encoding="utf-8")


def test_a_broken_pipe_elsewhere_is_an_error_and_no_verdict(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("karat.workflows.offline.evaluate.evaluate", broken)
    assert ends(["evaluate", "qrels", "old.trec"]) == 4
    assert capsys.readouterr().err == "karat: Broken pipe\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("set -o pipefail; $KARAT $WORSE -f json | head -1", 1),
        pytest.param("$KARAT $WORSE <&- >&- 2>&-", 1, marks=pytest.mark.deep),
        pytest.param("$KARAT $WORSE >/dev/full 2>&1", 4, marks=pytest.mark.deep),
    ],
)
def test_as_a_process(line: str, code: int) -> None:
    words = {
        "KARAT": f"{sys.executable} -c '{START}'",
        "WORSE": " ".join(WORSE),
        "PYTHONPATH": str(Path(karat.__file__).parents[1]),
    }
    line = line.replace("$KARAT", words["KARAT"])
    done = subprocess.run(
        ["bash", "-c", line], env=os.environ | words, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    if "head" in line:
        assert done.stdout == "{\n"
