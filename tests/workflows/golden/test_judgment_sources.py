"""Grades of models are not people's: at import, and where they were imported as such."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat.errors import UsageError
from karat.store.sql import audit, judgments
from karat.tables import Pairs
from karat.workflows.golden.agreement import agreement_in
from karat.workflows.golden.editions import content_of
from karat.workflows.golden.import_ import ImportResult, import_from
from karat.workflows.golden.judgment_sources import SourceUnknown, correct_source, sources_of
from karat.workflows.golden.pooling import enqueue
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
HEAD = "query_id,query,doc_id,grade,rater\n"


@pytest.fixture
def imports(shop: Workspace, tick: Tick, tmp_path: Path) -> Callable[..., ImportResult]:
    """Imports ten pairs that raters graded, with arguments of ``import_from``."""

    def run(
        *raters: str, source: tuple[str, ...] = (), grade: int = 1, **more: str
    ) -> ImportResult:
        rows = [
            f"q{n},query {n},d,{(n + grade) % 2},{name}\n" for n in range(10) for name in raters
        ]
        (tmp_path / "file.csv").write_text(HEAD + "".join(rows), encoding="utf-8")
        sources = sources_of(source)
        return import_from(shop, tmp_path / "file.csv", now=tick(), sources=sources, **more)

    return run


def sources(opened: Workspace) -> dict[str, list[str]]:
    """The sources of each rater's judgments that count."""
    with opened.store.read() as c:
        frame = judgments.current(c, opened.golden.id).frame
    return {rater: sorted(set(part["source"])) for (rater,), part in frame.group_by("rater")}


def raters_of(opened: Workspace) -> list[str]:
    """Whose grades an edition would hold."""
    return sorted(set(content_of(opened).grades["raters"].explode()))


def test_a_rater_who_is_plainly_a_model_is_asked_about(
    shop: Workspace, imports: Callable[..., ImportResult]
) -> None:
    with pytest.raises(SourceUnknown, match="'gpt-5' reads like a model") as error:
        imports("ann", "gpt-5")
    assert "'gpt-5=llm' for a model" in str(error.value)
    assert error.value.raters == ["gpt-5"]
    assert sources(shop) == {}
    imports("ann", "gpt-5", source=("gpt-5=llm",))
    assert sources(shop) == {"ann": ["human"], "gpt-5": ["llm"]}
    imports("gpt-5", grade=0)  # it is known now
    assert sources(shop) == {"ann": ["human"], "gpt-5": ["llm"]}


@pytest.mark.parametrize(
    ("raters", "source", "more", "found"),
    [
        (("ann",), (), {}, {"ann": ["human"]}),
        (("claude.dupont",), (), {}, {"claude.dupont": ["human"]}),
        (("",), (), {}, {"import": ["import"]}),
        (("",), ("llm",), {}, {"llm": ["llm"]}),
        (("",), ("clicks",), {}, {"clicks": ["clicks"]}),
        (("",), ("llm",), {"rater": "m1"}, {"m1": ["llm"]}),
        (("m1", "ann"), ("llm", "ann=human"), {}, {"m1": ["llm"], "ann": ["human"]}),
        (("ann",), ("import",), {}, {"ann": ["import"]}),
        (("gpt-5",), ("human",), {}, {"gpt-5": ["human"]}),
    ],
)
def test_sources(
    raters: tuple[str, ...],
    source: tuple[str, ...],
    more: dict[str, str],
    found: dict[str, list[str]],
    shop: Workspace,
    imports: Callable[..., ImportResult],
) -> None:
    imports(*raters, source=source, **more)
    assert sources(shop) == found


def test_what_cannot_be_meant(imports: Callable[..., ImportResult]) -> None:
    with pytest.raises(UsageError, match="unknown source 'lm'; did you mean llm"):
        sources_of(["lm"])
    with pytest.raises(UsageError, match="two sources for 'a=b': llm and human"):
        sources_of(["a=b=llm", "a=b=human"])
    with pytest.raises(UsageError, match="need a name"):
        imports("", source=("human",))
    with pytest.raises(SourceUnknown, match="'gpt-5'"):
        imports("", rater="gpt-5")


def test_a_correction_reaches_agreement_and_editions_and_deletes_nothing(
    shop: Workspace, imports: Callable[..., ImportResult], tick: Tick
) -> None:
    imports("ann")
    imports("modelA", "ben", grade=0)
    assert raters_of(shop) == ["ann", "ben", "modelA"]
    before = agreement_in(shop)
    assert correct_source(shop, "modelA", "llm", person="eve", now=tick()) == 10
    assert sources(shop) == {"ann": ["human"], "ben": ["human"], "modelA": ["llm"]}
    after = agreement_in(shop)
    assert raters_of(shop) == ["ann", "ben"]
    assert before is not None
    assert after is not None
    assert len(before.raters) == 3
    assert len(after.raters) == 2
    with shop.store.read() as c:
        history = judgments.history(c, shop.golden.id, "q0", "d").filter(
            pl.col("rater") == "modelA"
        )
        [note] = audit.frame(c).rows(named=True)
    assert history.select("source", "counts", "grade").rows() == [
        ("human", False, 0.0),
        ("llm", True, 0.0),
    ]
    assert history["import_id"].n_unique() == 1
    assert (note["person"], note["action"], note["subject"]) == ("eve", "correct source", "modelA")
    assert "judgments 10, from human, to llm" in note["about"]
    imports("modelA", grade=0)  # it stays what it is, and adds nothing
    assert sources(shop)["modelA"] == ["llm"]
    with pytest.raises(UsageError, match="already"):
        correct_source(shop, "modelA", "llm", person="eve", now=tick())
    with pytest.raises(UsageError, match="did you mean modelA"):
        correct_source(shop, "modela", "llm", person="eve", now=tick())


def test_what_came_under_both_sources_counts_once(
    shop: Workspace, imports: Callable[..., ImportResult], tick: Tick
) -> None:
    imports("modelA")
    done = imports("modelA", source=("llm",))
    assert any("karat golden source 'modelA' llm" in each for each in done.exchange.assumed)
    assert sources(shop) == {"modelA": ["human", "llm"]}
    assert correct_source(shop, "modelA", "llm", person="eve", now=tick()) == 10
    assert sources(shop) == {"modelA": ["llm"]}
    with shop.store.read() as c:
        assert len(judgments.current(c, shop.golden.id)) == 10


def test_what_a_person_gave_here_stays(
    shop: Workspace, imports: Callable[..., ImportResult], tick: Tick
) -> None:
    imports("ann")
    pairs = Pairs(pl.DataFrame({"query_id": ["q0"], "doc_id": ["d"]}))
    enqueue(shop, pairs, now=tick())
    judging = Judging(shop, "rita", tick)
    card = judging.card()
    assert card is not None
    judging.submit(card, 1)
    with pytest.raises(UsageError, match="gave 1 of these judgments in karat"):
        correct_source(shop, "rita", "llm", person="eve", now=tick())
    assert sources(shop)["rita"] == ["human"]
