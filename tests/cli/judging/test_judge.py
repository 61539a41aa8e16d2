"""``karat judge --terminal``: keys, what they do, and what a card must not tell."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karat.cli.judging import judge as command
from karat.store.sql import judgments
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import open_workspace

Typed = Callable[..., Any]  # conftest.py

NOW = 1_800_000_000_000_000


@pytest.fixture(params=[2])
def shop(
    typed: Typed,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Path:
    """A golden set with one query and four documents, pooled from the run "secretsystem"."""
    made = tmp_path_factory.getbasetemp() / f"judged-by-{request.param}"
    if made.exists():
        return Path(shutil.copytree(made, tmp_path / "shop"))
    typed(f"init shop --name shop --raters {request.param}")
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q7", "text": "stiff door", "metadata": {"need": "open it again"}}\n',
        encoding="utf-8",
    )
    documents = (f'{{"_id": "d{n}", "title": "Door {n}", "text": "T{n}"}}\n' for n in range(4))
    (tmp_path / "corpus.jsonl").write_text("".join(documents), encoding="utf-8")
    run = (f"q7 Q0 d{n} {n + 1} {77.5 - n} secretsystem\n" for n in range(4))
    (tmp_path / "secretsystem.trec").write_text("".join(run), encoding="utf-8")
    typed("golden import queries.jsonl corpus.jsonl -w shop")
    typed("golden pool secretsystem.trec -w shop")
    shutil.copytree(tmp_path / "shop", made)
    return tmp_path / "shop"


def said(shop: Path) -> list[tuple[str | None, float | None, str | None]]:
    """Rater, grade and reason of what counts."""
    with open_workspace(shop, now=NOW) as opened, opened.store.read() as connection:
        frame = judgments.current(connection, opened.golden.id).frame
        return frame.select("rater", "grade", "reason").rows()


def test_keys_do_what_they_say(typed: Typed, shop: Path) -> None:
    done = typed(
        "judge --terminal --rater zoe -w shop",
        given="3\ne talks of doors\n2\nu language\nz\nu 4 a locksmith\nx\nz\n1 bent\nl\nq\n",
    )
    assert said(shop) == [
        ("zoe", 3, None),
        ("zoe", 2, "talks of doors"),
        ("zoe", 1, "bent"),
    ]
    assert "unknown key 'x'" in done.out
    assert done.out.splitlines()[-1] == "zoe: 3 of 4 judged, 1 put off"
    assert "stored with the next grade" in done.out


def test_without_a_terminal_both_ways_are_named(typed: Typed, shop: Path) -> None:
    done = typed("judge --rater zoe -w shop", code=2)
    for way in ("karat serve", "karat judge --terminal"):
        assert way in done.err
    assert not said(shop)


def test_a_reason_goes_with_its_own_card_alone(typed: Typed, shop: Path) -> None:
    typed("judge --terminal --rater zoe -w shop", given="e for this one\nl\n3\nq\n")
    assert said(shop) == [("zoe", 3, None)]


def test_after_a_stop_it_goes_on_with_the_same_card(typed: Typed, shop: Path) -> None:
    line = "judge --terminal --rater zoe -w shop"
    shown = typed(line, given="q\n").out
    card = shown[shown.index("───") :]
    again = typed(line, given="2\nq\n").out
    assert card[:60] in again
    assert "1 of 4 judged" in typed(line, given="").out  # standard input may simply end


def test_why_it_cannot_be_judged_is_asked_for(typed: Typed, shop: Path) -> None:
    done = typed(
        "judge --terminal --rater zoe -w shop", given="u\n3 Finnish\nu\nnonsense\nu other\nq\n"
    )
    assert said(shop) == [("zoe", None, "language: Finnish")]
    assert " 3  it is in a language I do not read" in done.out
    assert "unknown reason 'nonsense'" in done.out
    assert "the reason other needs an explanation\n  fix: other: the link is dead" in done.out


def test_the_last_judgment_can_be_taken_back(typed: Typed, shop: Path) -> None:
    done = typed("judge --terminal --rater zoe -w shop", given="0\n" * 4 + "z\n3\nw\nq\n")
    assert [grade for _, grade, _ in said(shop)] == [0, 0, 0, 3]
    assert "the queue is empty: z undoes your last judgment, q stops" in done.out
    assert done.out.splitlines()[-1] == "zoe: all 4 judged: nothing left"
    empty = typed("judge --terminal --rater new -w shop", given="z\nq\n")
    assert "nothing to undo" in empty.out


def test_a_card_is_blind(typed: Typed, shop: Path) -> None:
    typed("judge --terminal --rater marmaduke -w shop", given="3 splendid\n" * 4)
    seen = typed("judge --terminal --rater zoe -w shop", given="g\nm\n?\n" + "2\n" * 4).out
    assert "stiff door" in seen
    assert "open it again" in seen
    assert seen.count("Door ") == 5  # four cards, and one of them once more by m
    for hidden in ("secretsystem", "marmaduke", "splendid", "77.5", "q7", "rank", "rating"):
        assert hidden not in seen
    for line in seen.splitlines():
        assert len(line) <= 80


def test_the_guideline_is_the_one_that_is_recorded(
    typed: Typed, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes between two cards: the second is shown, and judged, by the new text."""

    def keys() -> Iterator[tuple[str, str]]:
        (shop / "guideline.md").write_text("Only hinges count.\n", encoding="utf-8")
        with open_workspace(shop, now=NOW):
            pass
        for key in "g3g2q":
            yield key, ""

    monkeypatch.setattr(command, "_lines", keys)
    seen = typed("judge --terminal --rater zoe -w shop").out
    assert seen.index("Judge whether the document") < seen.index("Only hinges count.")
    with open_workspace(shop, now=NOW) as opened, opened.store.read() as connection:
        frame = judgments.current(connection, opened.golden.id).frame
    assert frame["guideline"].to_list() == ["1", "2"]


def test_an_edit_is_said_on_standard_error(typed: Typed, shop: Path) -> None:
    path = shop / "karat.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("raters = 2", "raters = 3"), encoding="utf-8")
    line = "judge --terminal --rater zoe -w shop"
    said = "karat: karat.toml was edited; now in effect: raters 3 (was 2)\n"
    assert typed(line, given="q\n").err == said
    assert typed(line, given="q\n").err == ""


def test_every_rater_has_an_order_of_their_own(typed: Typed, shop: Path) -> None:
    orders = set()
    for name in ("ida", "joe", "kim", "lou", "mia", "ned"):
        seen = typed(f"judge --terminal --rater {name} -w shop", given="l\n" * 4).out
        orders.add(tuple(line for line in seen.splitlines() if line.startswith("Door ")))
    # Of 24 orders; that six raters have one in common has a chance of 24 to the power of -5.
    assert len(orders) > 1


@pytest.mark.parametrize("key", ["3", "l"])
@pytest.mark.parametrize("shop", [1], indirect=True)
def test_a_pair_that_another_took_is_left_behind(
    key: str, typed: Typed, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease of ten minutes ends at lunch, and the other judges all there is."""
    monkeypatch.setattr(command, "clock", lambda: NOW)

    def keys() -> Iterator[tuple[str, str]]:
        with open_workspace(shop, now=NOW) as opened:
            other = Judging(opened, "other", lambda: NOW + 3_600_000_000)
            while (card := other.card()) is not None:
                other.submit(card, 1)
        yield key, ""

    monkeypatch.setattr(command, "_lines", keys)
    done = typed("judge --terminal --rater zoe -w shop")
    assert "not recorded: the pair is not yours" in done.out
    assert "the queue is empty" in done.out
    assert said(shop) == [("other", 1, None)] * 4


def test_what_is_wrong_is_told(typed: Typed, shop: Path) -> None:
    assert "karat judge --terminal" in typed("judge -w shop", code=2).err
    assert "--rater NAME" in typed("judge --terminal -w shop --rater", " ", code=2).err
    assert "karat init" in typed("judge --terminal", code=2).err


@pytest.mark.parametrize("name", ["", "  ", "import", "Import "])
def test_a_rater_has_a_name_of_their_own(name: str, typed: Typed, shop: Path) -> None:
    done = typed("judge --terminal -w shop --rater", name, given="3\n", code=2)
    assert "--rater NAME" in done.err
    assert said(shop) == []


def test_keys_that_nothing_waits_for_are_told_of_once(typed: Typed, shop: Path) -> None:
    done = typed("judge --terminal --rater zoe -w shop", given="3\n" * 20)
    assert done.out.count("the queue is empty: z or q") == 1
    assert len(said(shop)) == 4


def test_raters_who_came_to_agree_leave_nothing_to_settle(
    typed: Typed, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pairs wait for eve; ben comes round on the first while she has it before her."""
    monkeypatch.setattr(command, "clock", lambda: NOW)
    for name, grade in (("ann", 0), ("ben", 3)):
        typed(f"judge --terminal --rater {name} -w shop", given=f"{grade}\n" * 4)
    typed("golden disagreements --queue -w shop")

    def keys() -> Iterator[tuple[str, str]]:
        with open_workspace(shop, now=NOW) as opened:
            for _ in range(4):
                Judging(opened, "ben", lambda: NOW).undo()
            ben = Judging(opened, "ben", lambda: NOW)
            for _ in range(2):
                card = ben.card()
                assert card is not None
                ben.submit(card, 0)
        for _ in range(5):
            yield "1", ""
        yield "q", ""

    monkeypatch.setattr(command, "_lines", keys)
    done = typed("judge --terminal --adjudicate --rater eve -w shop")
    assert "not recorded: there is nothing to settle" in done.out
    assert "no disagreements to settle" in done.out.splitlines()[-1]
