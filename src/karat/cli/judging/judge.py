"""karat judge."""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened
from karat.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from karat.workflows.judging.queue import Card, Judging
    from karat.workflows.workspace.workspace import Workspace


@options.command("karat judge --terminal", "karat judge --terminal --rater anna --adjudicate")
@folder
@options.option(
    "--rater NAME", "Name of the rater.  [default: the user logged in]", envvar="KARAT_RATER"
)
@options.option("--terminal", "Judge in the terminal.")
@options.option("--adjudicate", "Adjudicate disagreements of other raters.")
def judge(start: Path, rater: str | None, terminal: bool, adjudicate: bool) -> None:
    """Judge the pairs in the queue, one document at a time.

    \b
    0-3  the grade         u  cannot judge      l  later
    e    write a reason    z  undo              g  the guideline
    m    whole document    ?  keys              q  stop

    Each judgment is stored before the next card is shown. If standard input is not a terminal, each
    line is a key, with a reason after u and e: "u language", "e talks about version 2".
    """  # noqa: D301 - click wants a real backspace before what it must not wrap
    if not terminal:
        raise UsageError(
            "karat judge needs --terminal",
            fix="karat judge --terminal, or karat serve to judge in the browser",
        )
    with opened(start) as found:
        from karat.workflows.judging.queue import Judging

        judging = Judging(
            found, getpass.getuser() if rater is None else rater, clock, adjudicate=adjudicate
        )
        _Desk(found, judging).sit()


class _Desk:
    def __init__(self, found: Workspace, judging: Judging) -> None:
        from karat.reports.judging.card import keys_of

        self.judging, self.golden = judging, found.golden
        self.out: Console = options.out()
        self.keys = keys_of(list(found.golden.grades))
        self.typed = _keys() if sys.stdin.isatty() else _lines()
        self.reason: str | None = None
        self.stopped = False

    def sit(self) -> None:
        """Show card after card, until the queue is empty or the rater stops."""
        from karat.reports.judging.card import show_keys

        self._say(f"{self.judging.rater}: {self.judging.progress()}")
        show_keys(self.out, self.keys, self.golden.grades)
        card = self.judging.card()
        while not self.stopped:
            card = self._over() if card is None else self._judged(card)
        self._say(f"\n{self.judging.rater}: {self.judging.progress()}")

    def _judged(self, card: Card) -> Card | None:
        """Show a card until it is judged or put off; return the next, or None to stop."""
        from karat.golden.queue import LeaseLost
        from karat.reports.judging.card import show_grades, show_guideline, show_keys

        self.reason = None  # it was for the card before
        self._show(card)
        show_grades(self.out, self.keys, self.golden.grades)
        since = time.monotonic()
        for key, words in self.typed:
            try:
                if key in self.keys or key == "u":
                    seconds = round(time.monotonic() - since, 3)
                    grade = self.keys.get(key)
                    reason = self._why(words) if grade is None else words or self.reason
                    self.judging.submit(card, grade, reason, seconds=seconds)
                    return self._next("cannot judge" if grade is None else key)
                if key == "l":
                    self.judging.later(card.claim.slot_id)
                    return self._next("later")
                if key == "z":
                    undone = self.judging.undo()
                    if undone is not None:
                        return undone.card
                    self.out.print("nothing to undo")
                elif key == "e":
                    self.reason = words or self._asked("reason")
                    self.out.print("stored with the next grade" if self.reason else "no reason")
                elif key == "g":
                    show_guideline(self.out, card.claim.guideline_text)
                elif key == "m":
                    self._show(card, whole=True)
                elif key == "q":
                    break
                elif key == "?":
                    show_keys(self.out, self.keys, self.golden.grades)
                else:
                    self._say(f"unknown key {key!r}; ? lists the keys")
            except UsageError as error:
                self._say(f"not recorded: {error}")
                if key == "l" or isinstance(error, LeaseLost):
                    return self.judging.card()  # another rater has the pair now
        self.stopped = True
        return None

    def _over(self) -> Card | None:
        self._say("the queue is empty: z undoes your last judgment, q stops")
        reminded = False
        for key, _ in self.typed:
            if key == "z" and (undone := self.judging.undo()) is not None:
                return undone.card
            if key == "q":
                break
            if key == "z":
                self._say("nothing to undo")
            elif not reminded:
                self._say("the queue is empty: z or q")
                reminded = True
        self.stopped = True
        return None

    def _next(self, done: str) -> Card | None:
        self._say(f"{done} · {self.judging.progress()}")
        return self.judging.card()

    def _say(self, text: str) -> None:
        from karat.reports.writers.plain import plain

        self.out.print(plain(text))

    def _show(self, card: Card, *, whole: bool = False) -> None:
        from karat.reports.judging.card import show_card

        claim = card.claim
        show_card(
            self.out,
            query=claim.query_text or claim.query_id,
            need=claim.need,
            title=claim.title,
            text=claim.text,
            url=claim.url,
            doc_id=claim.doc_id,
            votes=[(vote.grade, vote.reason) for vote in card.votes],
            whole=whole,
        )

    def _why(self, typed: str) -> str:
        from karat.golden.queue import REASONS

        names = list(REASONS)
        if not typed:
            for place, name in enumerate(names, start=1):
                self.out.print(f" {place}  {REASONS[name]}")
        chosen = typed or self._asked("why (a number, and optional text)")
        number, _, more = chosen.partition(" ")
        if number.isdecimal() and 1 <= int(number) <= len(names):
            return f"{names[int(number) - 1]}{f': {more}' if more else ''}"
        return chosen

    def _asked(self, prompt: str) -> str:
        if sys.stdin.isatty():
            return str(click.prompt(prompt, default="", show_default=False)).strip()
        return sys.stdin.readline().strip()


def _keys() -> Iterator[tuple[str, str]]:
    while True:
        key = click.getchar()
        if key in {"\x03", "\x04"}:
            return
        yield key, ""


def _lines() -> Iterator[tuple[str, str]]:
    for line in iter(sys.stdin.readline, ""):
        key, _, words = line.strip().partition(" ")
        if key:
            yield key, words.strip()
