"""karat compare on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat.cli.main import _run


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    qrels = "".join(f"q{n} 0 good 1\n" for n in range(30))
    for name, place in (("old", 2), ("new", 1)):
        lines = [
            f"q{n} Q0 {'good' if at == place + n % 2 else f'x{at}'} {at} {9 - at} {name}\n"
            for n in range(30)
            for at in range(1, 5)
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    (tmp_path / "qrels").write_text(qrels)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def karat(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["karat", *arguments])
    return _run()


def test_the_table_says_better(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert karat(monkeypatch, "compare", "qrels", "old.trec", "new.trec", "-m", "RR") == 0
    text = capsys.readouterr().out
    # RR from 1/2 and 1/3 to 1 and 1/2: +.333 on average.
    assert "new against old" in text
    assert "+0.333" in text
    assert "better" in text
    assert "30/0/0" in text
    assert max(map(len, text.splitlines())) <= 80


def test_json(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("compare", "qrels", "old.trec", "new.trec", "-m", "RR", "-f", "json")
    assert karat(monkeypatch, *command, "--by", "relevant_documents") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["differences"][0]["verdict"] == "better"
    assert found["slices"][0]["slice"] == "1"
    assert len(found["queries"]) == 30


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--margin", "-1"), "is not above 0"),
        (("-m", "NumRet"), "no mean over queries"),
        (("--by", "class"), "--queries FILE"),
    ],
)
def test_mistakes(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    says: str,
) -> None:
    assert karat(monkeypatch, "compare", "qrels", "old.trec", "new.trec", *more) == 2
    assert says in capsys.readouterr().err
