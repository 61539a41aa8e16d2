"""--open: the page that was written is opened in the browser."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from karat.workflows.offline import report

from .conftest import Typed

RUN = "".join(f"{q} Q0 {d} {r} {4 - r} x\n" for q in "123" for r, d in enumerate("abc", start=1))


@pytest.fixture(autouse=True)
def browser(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A browser that writes down what it opens, and files to evaluate; where it writes."""
    program, opened = tmp_path / "browser", tmp_path / "opened.txt"
    program.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(program))
    monkeypatch.setattr("webbrowser._tryorder", None)  # else BROWSER is read once in a process
    for name, text in (("q", "1 0 a 1\n2 0 b 1\n3 0 c 1\n"), ("r", RUN), ("r2", RUN)):
        (tmp_path / name).write_text(text)
    (tmp_path / "p.toml").write_text('[[rule]]\nmeasure = "RR@10"\nmax_drop = "5%"\n')
    return opened


def opened(browser: Path) -> str:
    for _ in range(100):
        if browser.exists() and browser.read_text().endswith("\n"):
            break
        time.sleep(0.02)
    return browser.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "evaluate q r -m RR@10 --report page.html",
        "compare q r r2 -m RR@10 --report page.html",
        "gate --policy p.toml q r r2 --report page.html",
        "trend h.jsonl -f html -o page.html",
    ],
)
def test_a_page_is_opened(
    typed: Typed, tmp_path: Path, browser: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "write_report", lambda *_, **__: None)  # has tests of its own
    typed("evaluate q r -m RR@10 --history h.jsonl --report page.html")
    assert not browser.exists(), "not unless it is asked for"
    typed(f"{line} --open")
    assert opened(browser) == f"{(tmp_path / 'page.html').resolve().as_uri()}\n"


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("evaluate q r --open", "--report report.html --open"),
        ("compare q r r2 --open", "--report report.html --open"),
        ("gate --policy p.toml q r r2 --open", "--report report.html --open"),
        ("trend h.jsonl --open", "-f html -o trend.html --open"),
        ("trend h.jsonl -f json -o h.json --open", "-f html -o trend.html --open"),
    ],
)
def test_without_a_page_there_is_nothing_to_open(typed: Typed, line: str, fix: str) -> None:
    err = typed(line, code=2).err
    assert err == f"karat: --open needs a report to open\n  fix: {fix}\n"


def test_that_no_browser_opened_is_said(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _url: False)
    monkeypatch.setattr(report, "write_report", lambda *_, **__: None)
    done = typed("evaluate q r -m RR@10 --report page.html --open")
    assert done.err == "karat: could not open page.html in a browser\n"
