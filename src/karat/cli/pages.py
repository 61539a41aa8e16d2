"""What commands write beside what they print: a page, and a picture."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.mistakes import printable
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.tables import Qrels, Results, Run
    from karat.tables.comparison import Comparison
    from karat.tables.release.gate import Gate

_RULES = ("rel", "complete", "depth", "judged_only", "fully_judged", "collapse", "compat", "scale")


def write_page(
    path: str,
    found: Results | Comparison | Gate,
    runs: Sequence[Run],
    judgments: Qrels,
    qrels: str,
    settings: Mapping[str, Any],
    comparison: Comparison | None = None,
) -> None:
    """Write what was found as a page, under the rules it was found by.

    Args:
        path: The file.
        found: What the command found.
        runs: The runs, the baseline first.
        judgments: The judgments.
        qrels: Where these were read; a BEIR folder has titles of documents.
        settings: The options of the command.
        comparison: Of a gate's two runs.
    """
    from karat.workflows.offline.report import titled, write_report

    write_report(
        path,
        found,
        runs=runs,
        qrels=judgments,
        queries=settings["queries"],
        documents=titled(settings["documents"], qrels),
        comparison=comparison,
        **{name: settings[name] for name in _RULES if name in settings},
    )


def need_report(path: str | None, *, opened: bool, by: str = "--report report.html") -> None:
    """Refuse ``--open`` where no page is written.

    Raises:
        UsageError: there is no page to open.
    """
    if opened and path in {None, "-"}:
        raise UsageError("--open needs a page to open", fix=f"{by} --open")


def show_page(path: str) -> None:
    """Open a page in the browser; where there is none, its path is printed."""
    import webbrowser

    if not webbrowser.open(Path(path).resolve().as_uri()):
        print(f"karat: no browser opened {printable(path)}", file=sys.stderr)
