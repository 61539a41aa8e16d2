"""Make docs/images/demo.svg from what `karat demo` really prints.

    python tests/docs/make_images.py

The picture shows the demo of the Python that runs this (its own documentation is searched), less
what is too long for a README; an ellipsis stands where something was left out.
It names no font of another host: what a viewer's browser has is used.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

IMAGES = Path(__file__).resolve().parents[2] / "docs/images"
WIDTH = 80
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# Dark on both of a README's backgrounds; the dim grey still has a contrast of 7 to 1.
THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34),
        (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196),
    ],
)  # fmt: skip


POINTS = 4  # of the words on what it shows


def make() -> str:
    """The SVG of a terminal that ran the demo."""
    from karat.cli import options
    from karat.cli.workspace import demo

    recorder, picture = _recorder(), _recorder()
    shown, options.out = options.out, lambda: recorder
    try:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            assert demo.demo.callback is not None
            demo.demo.callback(Path("karat-demo"))
    finally:
        options.out = shown
    picture.print("$ karat demo", style="bold")
    for line in short(recorder.export_text(styles=True).splitlines()):
        picture.print(Text.from_ansi(line))
    picture.print()  # room below the last line
    return own(picture.export_svg(title="karat demo", theme=THEME, unique_id="karat-demo"))


def short(lines: list[str]) -> Iterator[str]:
    """The lines worth a picture: the first measure, its classes, and the first words on them.

    Args:
        lines: What the demo printed, with the codes of a terminal.
    """
    part, points, before = "head", 0, ""
    for line in lines:
        plain = Text.from_ansi(line).plain.strip()
        if part == "head" and plain.startswith("RR@10"):
            yield "…"
            part = "left out"
        elif plain.startswith("nDCG@10 by"):
            yield ""
            part = "classes"
        elif plain.startswith("What this shows"):
            part = "words"
        elif part == "words" and plain.startswith("·"):
            points += 1
            if points > POINTS:
                yield "…"
                return
        if part != "left out" and (plain or before):  # no two empty lines
            yield line
            before = plain


def _recorder() -> Console:
    return Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )


def own(svg: str) -> str:
    """The SVG without anything that would be loaded from elsewhere."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg)
    svg = re.sub(r"font-family: [^;]+;", f"font-family: {FONTS};", svg)
    svg = re.sub(r"<!-- Generated with Rich[^>]*-->", "", svg)
    return re.sub(r"\n\s*\n+", "\n", svg)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "demo.svg").write_text(make(), encoding="utf-8", newline="\n")
    print("docs/images/demo.svg")
