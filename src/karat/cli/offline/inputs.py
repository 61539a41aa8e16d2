"""The judgments and runs that a command is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from karat.cli.progress import watching

if TYPE_CHECKING:
    from karat.tables import Qrels

Notes = Callable[..., list[Any]]


def read(
    qrels: str,
    read_runs: Callable[[Any], list[Any]],
    settings: dict[str, Any],
    *,
    qrels_format: str | None,
    part: str | None,
) -> tuple[Qrels, list[Any], Notes]:
    """Judgments, runs, and the notes on the use of a part of the golden set.

    ``settings["queries"]`` becomes QRELS if that has queries, then those of the part.
    """
    from karat import formats
    from karat.workflows.offline.parts import within

    with watching() as watch:
        runs = read_runs(watch)
    judgments = formats.read_qrels(qrels, qrels_format)
    if not settings["queries"] and formats.holds_queries(qrels):
        settings["queries"] = qrels
    if part is None:
        return judgments, runs, lambda **_: []
    chosen = within(part, judgments, runs, settings["queries"])
    settings["queries"] = chosen.queries
    return chosen.qrels, chosen.runs, chosen.used
