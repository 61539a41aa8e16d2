"""Two who add queries at the same instant: the second sees what the first put there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.contracts.conftest import ON_BOTH

from karat.store.sql import judgments, queries
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.golden import import_, sampling
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

NOW = 1_700_000_000_000_000
Step = Callable[[Workspace, str], object]


@pytest.fixture
def place(url: str, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A workspace of a store that others share."""
    environment = {"KARAT_STORE": url}
    make_workspace(tmp_path / "shop", now=NOW, environment=environment)
    return tmp_path / "shop", environment


def taken(opened: Workspace, text: str) -> object:
    """A file says of its query 1, which is called otherwise in each, that d has grade 2."""
    said = {"query_id": ["1"], "doc_id": ["d"], "grade": [2.0], "rater": [text], "reason": [None]}
    found = Exchange(
        "csv",
        queries=pl.DataFrame({"query_id": ["1"], "text": [text]}),
        judgments=pl.DataFrame(said, schema_overrides={"reason": pl.String}),
    )
    return import_.import_exchange(opened, found, file=text, sha256="", now=NOW)


def chosen(opened: Workspace, text: str) -> object:
    """A log holds this query alone."""
    log = opened.workspace.root / f"{threading.get_ident()}.csv"
    log.write_text(f"query,count\n{text},3\n", encoding="utf-8")
    return sampling.choose_queries(opened, log, 1, now=NOW)


@ON_BOTH
@pytest.mark.parametrize(
    ("steps", "texts", "left"),
    [
        # One id and two texts: two queries, each with its own judgment.
        ((taken, taken), ("red shoes", "tax law"), ["red shoes", "tax law"]),
        # One text: whoever is the second finds it there.
        pytest.param(
            *((taken, chosen), ("red shoes", "Red shoes"), ["red shoes"]), marks=pytest.mark.deep
        ),
        pytest.param(
            *((chosen, chosen), ("red shoes", "red shoes"), ["red shoes"]), marks=pytest.mark.deep
        ),
    ],
)
def test_queries_of_two_at_once_stay_what_they_are(
    steps: tuple[Step, Step],
    texts: tuple[str, str],
    left: list[str],
    place: tuple[Path, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, environment = place
    both = threading.Barrier(2)
    for module in (import_, sampling):
        of_module = module.same_queries

        def met(*given: Any, at: Any = of_module) -> dict[str, str]:
            found: dict[str, str] = at(*given)
            with suppress(threading.BrokenBarrierError):  # the other is not here: it waits
                both.wait(0.2)
            return found

        monkeypatch.setattr(module, "same_queries", met)
    failed: list[BaseException] = []

    def go(step: Step, text: str) -> None:
        try:
            with open_workspace(root, now=NOW, environment=environment) as opened:
                step(opened, text)
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=go, args=each) for each in zip(steps, texts, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not failed, failed
    with (
        open_workspace(root, now=NOW, environment=environment) as opened,
        opened.store.read() as c,
    ):
        asked = queries.frame(c, opened.golden.id)
        said = judgments.current(c, opened.golden.id).frame
    assert sorted(text.lower() for text in asked["text"]) == left
    of = dict(asked.select("query_id", "text").iter_rows())
    if steps == (taken, taken):
        assert {rater: of[query] for query, rater in said.select("query_id", "rater").rows()} == {
            text: text for text in texts
        }
