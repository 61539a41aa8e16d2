"""Advice: what to do about an error, in the words of the door at which somebody stands.

Whoever types a command can add an option; whoever looks at a page can choose in its form. Errors
carry an ``Advice`` as their ``fix``, and each door shows its own words.
"""

from __future__ import annotations

from typing import Self, SupportsIndex


class Advice(str):
    """What helps, as the command line says it.

    Attributes:
        page: What helps, as a page says it.
    """

    __slots__ = ("page",)
    page: str

    def __new__(cls, typed: str, *, page: str) -> Self:
        """Advice: ``typed`` at the command line, ``page`` on a page."""
        made = super().__new__(cls, typed)
        made.page = page
        return made

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Advice:
        """The same about another name, for both doors."""
        return Advice(super().replace(old, new, count), page=self.page.replace(old, new, count))


def on_page(said: str) -> str:
    """What a page says: of an advice its own words, else the same."""
    return said.page if isinstance(said, Advice) else said


def in_utf8(file: str) -> Advice:
    """What helps where a line is not UTF-8."""
    return Advice(
        f"if it is Latin-1: iconv -f latin1 -t UTF-8 {file}", page="save the file as UTF-8"
    )
