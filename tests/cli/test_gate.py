"""karat gate on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from karat.cli.main import _run

QUERIES = [f"q{n:02}" for n in range(30)]
DROP = '[[rule]]\nmeasure = "RR"\nmax_drop = "5%"\n'
FLOOR = '[[rule]]\nmeasure = "RR"\nmin = 0.9\n'
Karat = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def run_file(path: Path, place: int, queries: list[str]) -> None:
    lines = [
        f"{query} Q0 {'good' if at == place else f'x{at}'} {at} {9 - at} {path.stem}\n"
        for query in queries
        for at in range(1, 5)
    ]
    path.write_text("".join(lines))


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "qrels").write_text("".join(f"{query} 0 good 1\n" for query in QUERIES))
    run_file(tmp_path / "old.trec", 1, QUERIES)
    run_file(tmp_path / "new.trec", 2, QUERIES)  # RR from 1 to 1/2
    run_file(tmp_path / "half.trec", 1, QUERIES[:15])
    (tmp_path / "gate.toml").write_text(DROP)
    (tmp_path / "floor.toml").write_text(FLOOR)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def karat(monkeypatch: pytest.MonkeyPatch) -> Karat:
    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["karat", "gate", *arguments])
        return _run()

    return run


@pytest.mark.parametrize(
    ("policy", "runs", "code", "first"),
    [
        ("gate.toml", ("old.trec", "old.trec"), 0, "pass: "),
        ("gate.toml", ("old.trec", "new.trec"), 1, "fail: RR drops by at most 5%: dropped by 0.5"),
        ("gate.toml", ("old.trec", "half.trec"), 3, "unhealthy: "),
        ("floor.toml", ("old.trec",), 0, "pass: "),
        ("floor.toml", ("new.trec",), 1, "fail: RR is at least 0.9: it is 0.5"),
    ],
)
def test_exit_codes_and_the_reason_first(
    karat: Karat, capsys: Capture, policy: str, runs: tuple[str, ...], code: int, first: str
) -> None:
    assert karat("--policy", policy, "qrels", *runs) == code
    text = capsys.readouterr().out
    assert text.startswith(first)
    assert max(map(len, text.splitlines())) <= 80


def test_a_relative_drop_from_nothing_is_an_error(
    karat: Karat, files: Path, capsys: Capture
) -> None:
    run_file(files / "none.trec", 0, QUERIES)
    assert karat("--policy", "gate.toml", "qrels", "none.trec", "old.trec") == 4
    assert capsys.readouterr().out.startswith("error: RR drops by at most 5%: the baseline is 0")


def test_every_format(karat: Karat, capsys: Capture) -> None:
    said = {}
    for form in ("json", "junit", "github", "md"):
        assert karat("--policy", "gate.toml", "qrels", "old.trec", "new.trec", "-f", form) == 1
        said[form] = capsys.readouterr().out
    assert json.loads(said["json"])["exit_code"] == 1
    assert ET.fromstring(said["junit"].encode())[0].attrib["failures"] == "1"
    assert said["github"].startswith("::error file=gate.toml,title=karat%3A fail::RR drops")
    assert said["md"].startswith("**fail**: RR drops")


def test_a_saved_baseline_in_place_of_the_run(karat: Karat, capsys: Capture) -> None:
    assert karat("--save-baseline", "main.json", "qrels", "old.trec", "-m", "RR") == 0
    assert "main.json holds RR of old" in capsys.readouterr().err
    assert karat("--policy", "gate.toml", "qrels", "main.json", "old.trec") == 0
    assert karat("--policy", "gate.toml", "qrels", "main.json", "new.trec") == 1


def test_a_baseline_of_what_the_policy_asks_for(karat: Karat, capsys: Capture) -> None:
    assert karat("--save-baseline", "main.json", "--policy", "gate.toml", "qrels", "old.trec") == 0
    assert "main.json holds RR of old" in capsys.readouterr().err


def test_other_judgments_make_it_stale(karat: Karat, files: Path, capsys: Capture) -> None:
    assert karat("--save-baseline", "main.json", "qrels", "old.trec", "-m", "RR") == 0
    with (files / "qrels").open("a") as qrels:
        qrels.write("q00 0 x4 1\n")
    assert karat("--policy", "gate.toml", "qrels", "main.json", "old.trec") == 3
    assert capsys.readouterr().out.startswith("stale: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("qrels", "old.trec", "new.trec"), "no --policy"),
        (("--policy", "gate.toml", "qrels", "old.trec"), "there is no baseline"),
        (("--policy", "gate.toml", "qrels", *["old.trec"] * 3), "3 runs"),
        (("--policy", "gate.toml", "-m", "RR", "qrels", *["old.trec"] * 2), "not -m"),
        (("--save-baseline", "b.json", "qrels", *["old.trec"] * 2), "saves one run, not 2"),
        (("--policy", "no.toml", "qrels", *["old.trec"] * 2), "no.toml"),
        (("--policy", "qrels", "qrels", *["old.trec"] * 2), "no TOML"),
    ],
)
def test_mistakes_are_told(
    karat: Karat, capsys: Capture, arguments: tuple[str, ...], says: str
) -> None:
    assert karat(*arguments) == 2
    found = capsys.readouterr()
    assert says in found.err
    assert not found.out


FAILED = '{"query_id": "%s", "state": "failed", "error": "timeout"}\n'


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("dead.jsonl", "".join(FAILED % query for query in QUERIES), "30 of 30 got no answer"),
        ("empty.trec", "", "the run file is empty"),
        ("empty.jsonl", " \n", "the run file is empty"),
        ("empty.csv", "query_id,doc_id,score\n", "the run file is empty"),
    ],
)
def test_a_dead_search_is_unhealthy_in_every_format(
    karat: Karat, files: Path, capsys: Capture, name: str, content: str, says: str
) -> None:
    (files / name).write_text(content)
    command = ("--policy", "gate.toml", "qrels", "old.trec", name)
    for form in ("table", "json", "junit", "github", "md"):
        assert karat(*command, "-f", form, "--history", "history.jsonl") == 3
        assert says in capsys.readouterr().out
    points = (files / "history.jsonl").read_text().splitlines()
    assert {json.loads(point)["verdict"] for point in points} == {"unhealthy"}
    # A number is not made of it elsewhere, nor a baseline.
    if not content.strip():
        assert karat("--save-baseline", "b.json", "qrels", name) == 2
        assert "the file is empty" in capsys.readouterr().err


def test_an_empty_baseline_tells_nothing(karat: Karat, files: Path, capsys: Capture) -> None:
    (files / "empty.json").write_text("")
    assert karat("--policy", "gate.toml", "qrels", "empty.json", "old.trec") == 3
    text = capsys.readouterr().out
    assert text.startswith("cannot tell: baseline empty: the search answers: the run file is empty")
