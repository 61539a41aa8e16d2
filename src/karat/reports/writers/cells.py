"""Cells and tables that every terminal report is made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

# Escape sequences in ids from strangers could repaint the screen; all but the line break.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that turn the direction of what is written behind them: a terminal obeys them."""
CONTROLS = dict.fromkeys((*range(32), *range(127, 160), *_TURNING), "\N{REPLACEMENT CHARACTER}")
del CONTROLS[ord("\n")]

LABEL = 10  # columns that a name is not squeezed below
_NAMES = 24  # columns that names have together before numbers give way
_LEAST = 4  # columns of a name where numbers would be cut otherwise
_HEADING = 20  # columns; a longer word of a heading is folded
_GAP = 2  # columns between two columns, and around them all
_ANY = 10_000  # columns: more than any table takes

Cells = dict[str, str | Text]
"""A row: what stands under each heading, in order."""


def plain(text: str, style: str = "") -> Text:
    """Text for a cell: made harmless before its width is measured."""
    return Text(text.translate(CONTROLS), style)


def base(title: str = "") -> Table:
    """An empty table in the house's style."""
    heading = plain(title, "bold") if title else None
    return Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def fitted(
    title: str, rows: Sequence[Cells], spare: Sequence[str], out: Console, *, names: int = 1
) -> Table:
    """A table as wide as the screen at most; spare columns go first, the verdict never.

    The first ``names`` columns are folded where they are too long, the others only where the
    screen is too narrow even so, and then at their spaces.
    """
    left_out: set[str] = set()
    for name in (None, *spare):
        left_out |= {name} if name else set()
        table = base(title)
        table.padding = (0, 1, 0, 0)
        heads = [head for head in rows[0] if head not in left_out]
        for place, head in enumerate(heads):
            longest = max(cell_len(str(row[head])) for row in rows)
            if place < names:
                least = min(LABEL, longest)
                table.add_column(plain(head), overflow="fold", min_width=least)
            else:  # rich would take a column for as narrow as its longest word
                table.add_column(plain(head), justify="right", no_wrap=True, min_width=longest)
        for row in rows:
            table.add_row(*(row[head] for head in heads))
        wanted = out.measure(table, options=out.options.update(width=_ANY))
        if wanted.minimum <= out.width:
            _squeeze(table, rows, heads[:names], wanted.maximum - out.width)
            return table
    cells = [[_bare(row[head]) for head in heads] for row in rows]
    return squeezed(heads, cells, names, out.width, title=title)


def _bare(cell: str | Text) -> str | Text:
    """A cell without what only makes it as wide as its heading."""
    return cell.strip() if isinstance(cell, str) else cell


def needed(
    heads: Sequence[str], rows: Sequence[Sequence[str | Text]], texts: int, *, name: int
) -> int:
    """The columns of a screen that a table takes if a name has so many, and a number its line."""
    return _total(_labels(heads, rows, texts, name))


def label(texts: int) -> int:
    """The columns that each of so many names has before a further column of numbers does."""
    return max(LABEL, _NAMES // max(texts, 1))


def squeezed(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    texts: int,
    width: int,
    ends: Collection[int] = (),
    *,
    title: str = "",
) -> Table:
    """A table as wide as the screen at most, the first ``texts`` columns names; no number is cut.

    Headings are folded first, then names, then numbers at their spaces. A line stands below
    ``ends``.
    """
    widths = _widths(heads, rows, texts, width)
    table = base(title)
    table.padding = (0, 1, 0, 0)
    table.width = _total(widths)  # or rich would cut where the screen is narrower
    for place, (head, room) in enumerate(zip(heads, widths, strict=True)):
        justify: JustifyMethod = "left" if place < texts else "right"
        table.add_column(plain(head), justify=justify, overflow="fold", width=room)
    for number, row in enumerate(rows):
        cells = (each if isinstance(each, Text) else plain(each) for each in row)
        table.add_row(*cells, end_section=number in ends)
    return table


def _widths(
    heads: Sequence[str], rows: Sequence[Sequence[str | Text]], texts: int, width: int
) -> list[int]:
    """How wide each column is, so that all fit: what hurts least is narrowed first."""
    numbers = range(texts, len(heads))
    cells = [_longest(rows, place) for place in range(len(heads))]
    found = [min(max(_wide(h), cell), width) for h, cell in zip(heads, cells, strict=True)]
    words = [max((_word(str(row[place])) for row in rows), default=0) or 1 for place in numbers]
    floors = [
        [*found[:texts], *_labels(heads, rows, texts, LABEL)[texts:]],
        _labels(heads, rows, texts, label(texts)),
        _labels(heads, rows, texts, LABEL),
        [*_labels(heads, rows, texts, LABEL)[:texts], *words],
        [*(min(_LEAST, room) for room in found[:texts]), *words],
    ]
    for least in floors:
        found = _narrowed(found, least, _total(found) - width)
    return found


def _labels(
    heads: Sequence[str], rows: Sequence[Sequence[str | Text]], texts: int, name: int
) -> list[int]:
    """Widths with headings folded, and names where they are longer than ``name``."""
    folded = [
        max(_longest(rows, place), min(_word(head), _HEADING)) for place, head in enumerate(heads)
    ]
    return [*(min(room, name) for room in folded[:texts]), *folded[texts:]]


def _longest(rows: Sequence[Sequence[str | Text]], place: int) -> int:
    return max((_wide(line) for row in rows for line in str(row[place]).split("\n")), default=0)


def _word(text: str) -> int:
    """The longest word of a text: what cannot be folded at a space."""
    return max(map(_wide, text.split()), default=0)


def _wide(line: str) -> int:
    return plain(line).cell_len


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * len(widths)


def _narrowed(widths: Sequence[int], least: Sequence[int], excess: int) -> list[int]:
    """Widths with columns of the screen taken away, of the widest first, and none below least."""
    found = list(widths)
    for _ in range(excess):
        wide = [place for place, room in enumerate(found) if room > least[place]]
        if not wide:
            break
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def _squeeze(table: Table, rows: Sequence[Cells], heads: Sequence[str], excess: int) -> None:
    """Take columns of the screen from the names, the widest first; rich would cut the verdict."""
    if excess <= 0 or len(heads) < 2:
        return
    widths = [max(len(head), *(cell_len(str(row[head])) for row in rows)) for head in heads]
    least = [column.min_width or 1 for column in table.columns[: len(heads)]]
    found = _narrowed(widths, least, excess)
    for column, width in zip(table.columns, found, strict=False):
        column.width = width
