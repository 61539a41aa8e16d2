"""karat trend, as typed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from karat.cli import trend as command
from karat.cli.main import main
from karat.connectors import webhook
from karat.formats import history
from karat.tables.history import Answered, Point, Value

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
    said = "karat: nobody can tell nDCG@10: the newest point of bm25 lack"
    assert karat("rising.jsonl", "-f", "json")[2].startswith(said)
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
    answer = webhook.Delivery(False, 503, 4, "example.org: it answered 503")
    code, _, err = karat("falling.jsonl", "--notify", "https://example.org/x", "--fail-on-drift")
    assert code == 1, "that nobody was told changes no verdict"
    assert err == "karat: not notified, tried 4 times: example.org: it answered 503\n"
    assert karat("rising.jsonl", "--notify", "ftp://example.org")[0] == 2, "though nothing is sent"


def test_commit_and_time() -> None:
    assert command.commit(None, {}) is None
    assert command.commit("mine", {"GITHUB_SHA": "x"}) == "mine"
    assert command.commit(None, {"GITHUB_SHA": "", "CI_COMMIT_SHA": "x"}) == "x"
    assert len(command.now()) == 20
    assert command.now().endswith("Z")
