"""Reports that commands write to a file and open in a browser."""

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


def write_page(
    path: str,
    result: Results | Comparison | Gate,
    runs: Sequence[Run],
    judgments: Qrels,
    qrels: str,
    settings: Mapping[str, Any],
    comparison: Comparison | None = None,
    *,
    opened: bool = False,
) -> None:
    """Write a result as an HTML report, computed under the same rules, and open it if asked."""
    from karat.workflows.offline.report import titled, write_report

    write_report(
        path,
        result,
        runs=runs,
        qrels=judgments,
        queries=settings["queries"],
        documents=titled(settings["documents"], qrels),
        comparison=comparison,
    )
    if opened:
        show_page(path)


def need_report(path: str | None, *, opened: bool, by: str = "--report report.html") -> None:
    """Raise a ``UsageError`` for ``--open`` without a report."""
    if opened and path in {None, "-"}:
        raise UsageError("--open needs a report to open", fix=f"{by} --open")


def need_page(path: str | None, *, opened: bool) -> None:
    """As ``need_report``, for a page that cannot go to standard output."""
    need_report(path, opened=opened)
    if path == "-":
        raise UsageError(
            "a report cannot be written to standard output", fix="--report report.html"
        )


def put_page(path: str, page: str, *, opened: bool) -> None:
    """Write a page that is made already, and open it if asked."""
    from karat.formats.tables.writing import beside

    with beside(Path(path)) as stream:
        stream.write(page.encode())
    if opened:
        show_page(path)


def show_page(path: str) -> None:
    """Open a page in the browser, or print its path if that fails."""
    import webbrowser

    if not webbrowser.open(Path(path).resolve().as_uri()):
        print(f"karat: could not open {printable(path)} in a browser", file=sys.stderr)
