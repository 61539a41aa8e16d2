"""karat trend, as typed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from karat.cli.main import main
from karat.cli.release import trend as command
from karat.clients import webhook
from karat.formats.own import history
from karat.tables.release.history import Answered, Point, Value

Karat = Callable[..., tuple[int, str, str]]


def write(path: str, by: float) -> None:
    history.append(path, *(
        Point(f"2026-03-{i + 1:02}T02:00:00Z", "evaluate", "bm25", "c", None, "", "1",
              (Value("nDCG@10", 0.8 + by * i, 0.5, 0.9, 30),), {"qrels": "j", "run": f"r{i}"})
        for i in range(10)
    ))  # fmt: skip


@pytest.fixture
def karat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Karat:
    """``karat trend`` in a folder with falling.jsonl and rising.jsonl: exit code, out, err."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(webhook.SECRET, raising=False)
    write("falling.jsonl", -0.002)
    write("rising.jsonl", 0.002)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["karat", "trend", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capsys.readouterr())

    return run


def test_exit_codes(karat: Karat) -> None:
    assert karat("falling.jsonl")[0] == 0
    code, out, _ = karat("falling.jsonl", "--fail-on-drift")
    assert (code, "DRIFT" in out) == (1, True)
    assert karat("rising.jsonl", "--fail-on-drift")[0] == 0
    assert karat("absent.jsonl", "--fail-on-drift")[0] == 2
    assert karat("falling.jsonl", "-m", "AP")[0] == 2
    Path("bad.jsonl").write_text(Path("rising.jsonl").read_text() + "{\n")
    code, _, err = karat("bad.jsonl")
    assert (code, "line 11" in err, "Traceback" in err) == (2, True, False)


def test_a_night_without_answers_is_no_green_build(karat: Karat) -> None:
    for path in ("falling.jsonl", "rising.jsonl"):
        dead = replace(
            history.read(path)[-1],
            time="2026-04-01T02:00:00Z",
            answered=Answered(80, 80, 0, 0),
            values=(Value("nDCG@10", None, n=0),),
        )
        history.append(path, dead)  # fmt: skip
    code, out, err = karat("rising.jsonl", "--fail-on-drift")
    assert (code, err) == (3, "")
    assert "80 of 80 queries got no answer (left out)" in out
    assert karat("rising.jsonl")[0] == 0
    assert karat("falling.jsonl", "--fail-on-drift")[0] == 1, "a drift is sure"
    code, out, err = karat("rising.jsonl", "-f", "json")
    assert json.loads(out)["cannot_tell"] is True
    said = "karat: the newest point does not count: bm25, 2026-04-01 (c): 80 of 80 queries"
    assert err == f"{said} got no answer\n"


def test_a_collapse_is_no_green_build(karat: Karat) -> None:
    """All queries at 0: no interval, and nothing that drifts."""
    last = history.read("rising.jsonl")[-1]
    dead = Value("nDCG@10", 0.0, None, None, 30)
    history.append("rising.jsonl", replace(last, time="2026-04-01T02:00:00Z", values=(dead,)))
    code, out, _ = karat("rising.jsonl", "--fail-on-drift")
    assert (code, out.splitlines()[1][:27]) == (1, "WORSE since 2026-04-01 (c):")
    assert karat("rising.jsonl")[0] == 0
    found = json.loads(karat("rising.jsonl", "-f", "json")[1])
    assert (found["worse"], found["drifts"], found["cannot_tell"]) == (True, False, False)


def test_a_measure_that_is_gone_is_no_green_build(karat: Karat) -> None:
    last = history.read("rising.jsonl")[-1]
    other = replace(last, time="2026-04-01T02:00:00Z", values=(Value("AP", 0.5, 0.4, 0.6, 30),))
    history.append("rising.jsonl", other)
    assert karat("rising.jsonl", "--fail-on-drift")[0] == 3
    said = "karat: cannot tell nDCG@10: the newest point of bm25 lack"
    assert karat("rising.jsonl", "-f", "json")[2].startswith(said)
    assert karat("rising.jsonl", "-m", "AP", "--fail-on-drift")[0] == 3, "one point only"
    history.append("rising.jsonl", replace(other, time="2026-04-02T02:00:00Z"))
    assert karat("rising.jsonl", "-m", "AP", "--fail-on-drift")[0] == 0


def test_a_name_that_is_no_text_is_written(tmp_path: Path) -> None:
    """A note can name a file, and a file's name can be Latin-1."""
    command._write("caf\udce9", str(tmp_path / "x"))
    assert (tmp_path / "x").read_text() == "caf?"


def test_json_and_a_file(karat: Karat) -> None:
    found = json.loads(karat("falling.jsonl", "-f", "json", "--last", "3")[1])
    assert found["drifts"] is True
    assert len(found["series"][0]["marks"]) == 3
    assert karat("falling.jsonl", "-f", "json", "-o", "x.json")[1] == ""
    assert len(json.loads(Path("x.json").read_text())["series"][0]["marks"]) == 10
    assert karat("falling.jsonl", "-o", "x.txt")[1] == ""
    assert "●" in Path("x.txt").read_text(encoding="utf-8")
    assert karat("falling.jsonl", "-f", "html", "-o", "x.html")[0] == 0
    assert Path("x.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_notify(karat: Karat, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any, str | None]] = []
    answer = webhook.Delivery(True, 204, 1)

    def post(url: str, event: Any, *, secret: str | None) -> webhook.Delivery:
        sent.append((url, event, secret))
        return answer

    monkeypatch.setattr(webhook, "post", post)
    monkeypatch.setenv(webhook.SECRET, "hush")
    assert karat("rising.jsonl", "--notify", "https://example.org/x")[0] == 0
    assert not sent
    assert karat("falling.jsonl", "--notify", "https://example.org/x")[0] == 0
    [(url, event, secret)] = sent
    assert (url, event["event"], secret) == ("https://example.org/x", "trend.drift", "hush")
    answer = webhook.Delivery(False, 503, 4, "example.org: status 503")
    code, _, err = karat("falling.jsonl", "--notify", "https://example.org/x", "--fail-on-drift")
    assert code == 1, "that nobody was told changes no verdict"
    assert err == "karat: notification failed after 4 attempts: example.org: status 503\n"
    assert karat("rising.jsonl", "--notify", "ftp://example.org")[0] == 2, "though nothing is sent"


def test_commit_and_time() -> None:
    assert command.commit(None, {}) is None
    assert command.commit("mine", {"GITHUB_SHA": "x"}) == "mine"
    assert command.commit(None, {"GITHUB_SHA": "", "CI_COMMIT_SHA": "x"}) == "x"
    assert len(command.now()) == 20
    assert command.now().endswith("Z")


NIGHTS = 4


@pytest.fixture
def nights(karat: Karat) -> list[str]:
    """A file for each night, named by it, and ever fewer documents found; judgments in q.qrels."""
    Path("q.qrels").write_text("".join(f"q{i} 0 d 1\n" for i in range(30)))
    for night in range(NIGHTS):
        kept = ("d" if i >= 4 * night else "x" for i in range(30))
        Path(f"night{night}.trec").write_text(
            "".join(f"q{i} Q0 {doc} 1 1 t\n" for i, doc in enumerate(kept))
        )
    return [f"night{night}.trec" for night in range(NIGHTS)]


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Karat:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["karat", "evaluate", "q.qrels", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capsys.readouterr())

    return run


def test_a_history_of_which_nothing_was_compared_is_no_green_build(
    karat: Karat, evaluate: Karat, nights: list[str]
) -> None:
    """Runs named by their files: four series of one point, and a fall that no series has."""
    for path in nights:
        assert evaluate(path, "-m", "P@1", "--history", "h.jsonl")[0] == 0
    code, out, _ = karat("h.jsonl", "--fail-on-drift")
    assert code == 3
    said = " ".join(out.split())
    assert said.startswith("NOTHING WAS COMPARED: 4 series of one point each (night0, night1, ")
    assert "karat trend h.jsonl --series 'night*'" in said
    assert karat("h.jsonl")[0] == 0, "loud, and no failure unless asked"
    code, out, err = karat("h.jsonl", "-f", "json")
    found = json.loads(out)
    assert (found["compared"], found["cannot_tell"]) == (False, True)
    assert err.startswith("karat: NOTHING WAS COMPARED")
    assert "NOTHING WAS COMPARED" in karat("h.jsonl", "-f", "html")[1]
    assert karat("h.jsonl", "--fail-on-drift", "--series", "night*")[0] == 1, "the fix it names"


def test_a_series_has_one_name_whatever_its_runs_are_called(
    karat: Karat, evaluate: Karat, nights: list[str]
) -> None:
    for path in nights:
        assert evaluate(path, "-m", "P@1", "--history", "h.jsonl", "--series", "nightly")[0] == 0
    assert evaluate("night0.trec", "-m", "P@1", "--history", "h.jsonl")[0] == 0
    code, out, _ = karat("h.jsonl", "--series", "nightly", "-f", "json")
    [series] = json.loads(out)["series"]
    assert (code, series["run"], len(series["marks"])) == (0, "nightly", NIGHTS)
    assert [point.run for point in history.read("h.jsonl")][:2] == ["night0", "night1"]
    code, _, err = karat("h.jsonl", "--series", "nightli")
    assert (code, "nightly" in err) == (2, True)
    for path in nights[:2]:
        name = ("--name", "bm25")
        code, out, _ = evaluate(path, "-m", "P@1", "--history", "b.jsonl", *name, "-f", "json")
        assert (code, json.loads(out)["results"][0]["run"]) == (0, "bm25")
    assert len(json.loads(karat("b.jsonl", "-f", "json")[1])["series"]) == 1


def test_names_and_series_that_cannot_be_are_refused_before_anything_is_read(
    evaluate: Karat, nights: list[str]
) -> None:
    code, _, err = evaluate("none.trec", "none.trec", "--name", "a")
    assert (code, "1 names and 2 runs: expected one --name for each run" in err) == (2, True)
    assert evaluate("none.trec", "none.trec", "--name", "a", "--name", "a")[0] == 2
    code, _, err = evaluate(*nights[:2], "--history", "h.jsonl", "--series", "x")
    assert (code, "got 2 runs" in err, Path("h.jsonl").exists()) == (2, True, False)
    both = ("--name", "a", "--name", "b", "-f", "json", "-m", "P@1")
    found = json.loads(evaluate(*nights[:2], *both)[1])
    assert [row["run"] for row in found["results"]] == ["a", "b"]


def test_a_pattern_that_takes_two_systems_for_one_is_refused(
    karat: Karat, evaluate: Karat, nights: list[str]
) -> None:
    assert evaluate(*nights[:2], "-m", "P@1", "--history", "h.jsonl")[0] == 0
    code, _, err = karat("h.jsonl", "--series", "night*")
    assert (code, "measured at the same time" in err) == (2, True)


def test_a_history_of_which_each_night_breaks_was_not_compared(karat: Karat) -> None:
    for night in range(3):
        point = replace(history.read("rising.jsonl")[night], hashes={"qrels": f"j{night}"})
        history.append("broken.jsonl", point)
    code, out, _ = karat("broken.jsonl", "--fail-on-drift")
    said = " ".join(out.split())
    assert code == 3
    assert said.startswith("NOTHING WAS COMPARED: judgments changed on 2026-03-03 (c)")
