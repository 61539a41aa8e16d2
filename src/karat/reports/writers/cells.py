"""Cells and tables of terminal reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

# Control characters in untrusted ids could repaint the screen.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the direction of the text after them."""
CONTROLS = dict.fromkeys((*range(32), *range(127, 160), *_TURNING), "\N{REPLACEMENT CHARACTER}")
del CONTROLS[ord("\n")]

LABEL = 10  # least columns of a name
_NAMES = 24  # columns of all names together before numbers are narrowed
_LEAST = 4  # columns of a name if numbers would be cut otherwise
_HEADING = 20  # columns; longer words of a heading are folded
_GAP = 2  # columns between two columns, and around them all
_ANY = 10_000  # columns: wider than any table

Cells = dict[str, str | Text]
"""A row: heading → cell, in order."""


def plain(text: str, style: str = "") -> Text:
    """Text for a cell, without control characters."""
    return Text(text.translate(CONTROLS), style)


def base(title: str = "") -> Table:
    """An empty table in karat's style."""
    heading = plain(title, "bold") if title else None
    return Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def fitted(
    title: str, rows: Sequence[Cells], spare: Sequence[str], out: Console, *, names: int = 1
) -> Table:
    """A table that fits the screen: spare columns are dropped first, the verdict never.

    The first ``names`` columns are folded if too long; the others, at spaces, only if the screen
    is still too narrow.
    """
    dropped: set[str] = set()
    for name in (None, *spare):
        dropped |= {name} if name else set()
        table = base(title)
        table.padding = (0, 1, 0, 0)
        heads = [head for head in rows[0] if head not in dropped]
        for place, head in enumerate(heads):
            longest = max(cell_len(str(row[head])) for row in rows)
            if place < names:
                least = min(LABEL, longest)
                table.add_column(plain(head), overflow="fold", min_width=least)
            else:  # rich would narrow a column to its longest word
                table.add_column(plain(head), justify="right", no_wrap=True, min_width=longest)
        for row in rows:
            table.add_row(*(row[head] for head in heads))
        size = out.measure(table, options=out.options.update(width=_ANY))
        if size.minimum <= out.width:
            _squeeze(table, rows, heads[:names], size.maximum - out.width)
            return table
    cells = [[_bare(row[head]) for head in heads] for row in rows]
    return squeezed(heads, cells, names, out.width, title=title)


def _bare(cell: str | Text) -> str | Text:
    """A cell without padding."""
    return cell.strip() if isinstance(cell, str) else cell


def needed(
    heads: Sequence[str], rows: Sequence[Sequence[str | Text]], texts: int, *, name: int
) -> int:
    """The columns that a table takes with names of ``name`` columns, and numbers on one line."""
    return _total(_labels(heads, rows, texts, name))


def label(texts: int) -> int:
    """The columns of each of ``texts`` names before another column of numbers is added."""
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
    """A table that fits ``width``, whose first ``texts`` columns are names; no number is cut.

    Headings are folded first, then names, then numbers at spaces. A rule follows the rows ``ends``.
    """
    widths = _widths(heads, rows, texts, width)
    table = base(title)
    table.padding = (0, 1, 0, 0)
    table.width = _total(widths)  # else rich would cut it on a narrower screen
    for place, (head, room) in enumerate(zip(heads, widths, strict=True)):
        justify: JustifyMethod = "left" if place < texts else "right"
        table.add_column(plain(head), justify=justify, overflow="fold", width=room)
    for number, row in enumerate(rows):
        cells = (cell if isinstance(cell, Text) else plain(cell) for cell in row)
        table.add_row(*cells, end_section=number in ends)
    return table


def _widths(
    heads: Sequence[str], rows: Sequence[Sequence[str | Text]], texts: int, width: int
) -> list[int]:
    """Widths of the columns so that all fit, narrowed where it hurts least."""
    numbers = range(texts, len(heads))
    cells = [_longest(rows, place) for place in range(len(heads))]
    widths = [min(max(_wide(h), cell), width) for h, cell in zip(heads, cells, strict=True)]
    words = [max((_word(str(row[place])) for row in rows), default=0) or 1 for place in numbers]
    floors = [
        [*widths[:texts], *_labels(heads, rows, texts, LABEL)[texts:]],
        _labels(heads, rows, texts, label(texts)),
        _labels(heads, rows, texts, LABEL),
        [*_labels(heads, rows, texts, LABEL)[:texts], *words],
        [*(min(_LEAST, room) for room in widths[:texts]), *words],
    ]
    for least in floors:
        widths = _narrowed(widths, least, _total(widths) - width)
    return widths


def _labels(
    heads: Sequence[str], rows: Sequence[Sequence[str | Text]], texts: int, name: int
) -> list[int]:
    """Widths with folded headings, and names of at most ``name`` columns."""
    folded = [
        max(_longest(rows, place), min(_word(head), _HEADING)) for place, head in enumerate(heads)
    ]
    return [*(min(room, name) for room in folded[:texts]), *folded[texts:]]


def _longest(rows: Sequence[Sequence[str | Text]], place: int) -> int:
    return max((_wide(line) for row in rows for line in str(row[place]).split("\n")), default=0)


def _word(text: str) -> int:
    """The width of the longest word of a text."""
    return max(map(_wide, text.split()), default=0)


def _wide(line: str) -> int:
    return plain(line).cell_len


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * len(widths)


def _narrowed(widths: Sequence[int], least: Sequence[int], excess: int) -> list[int]:
    """Widths reduced by ``excess`` in all, the widest first, none below ``least``."""
    narrowed = list(widths)
    for _ in range(excess):
        wide = [place for place, room in enumerate(narrowed) if room > least[place]]
        if not wide:
            break
        narrowed[max(wide, key=narrowed.__getitem__)] -= 1
    return narrowed


def _squeeze(table: Table, rows: Sequence[Cells], heads: Sequence[str], excess: int) -> None:
    """Narrow the names, the widest first, so that rich does not cut the verdict."""
    if excess <= 0 or len(heads) < 2:
        return
    widths = [max(len(head), *(cell_len(str(row[head])) for row in rows)) for head in heads]
    least = [column.min_width or 1 for column in table.columns[: len(heads)]]
    for column, width in zip(table.columns, _narrowed(widths, least, excess), strict=False):
        column.width = width
