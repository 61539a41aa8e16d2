"""Make docs/images/demo.svg from what `karat demo` really prints.

    python tests/docs/make_images.py

The picture shows the demo of the Python that runs this (its own documentation is searched).
It names no font of another host: what a viewer's browser has is used.
"""

from __future__ import annotations

import io
import re
import tempfile
from contextlib import chdir
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

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


def make() -> str:
    """The SVG of a terminal that ran the demo."""
    from karat.cli import demo, options

    recorder = Console(
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
    recorder.print("$ karat demo", style="bold")
    shown, options.out = options.out, lambda: recorder
    try:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            assert demo.demo.callback is not None
            demo.demo.callback(Path("karat-demo"))
    finally:
        options.out = shown
    recorder.print()  # room below the last line
    return own(recorder.export_svg(title="karat demo", theme=THEME, unique_id="karat-demo"))


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
