"""The judgments and runs that a command is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from karat.cli.progress import watching
from karat.cli.workspace.workspace import need_store
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.tables import Qrels, Results
    from karat.tables.comparison import Comparison

Notes = Callable[..., list[Any]]
_Result = TypeVar("_Result", "Results", "Comparison")


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

    source = settings.pop("judgments", None)
    with watching() as watch:
        runs = read_runs(watch)
    if source is not None or os.path.isdir(qrels):  # noqa: PTH112 - False for any odd name
        judgments = _judged_by(qrels, source, settings, qrels_format)
    else:
        judgments = formats.read_qrels(qrels, qrels_format)
    if not settings["queries"] and formats.holds_queries(qrels):
        settings["queries"] = qrels
    if part is None:
        return judgments, runs, lambda **_: []
    chosen = within(part, judgments, runs, settings["queries"])
    settings["queries"] = chosen.queries
    return chosen.qrels, chosen.runs, chosen.used


def _judged_by(
    qrels: str, source: str | None, settings: dict[str, Any], qrels_format: str | None
) -> Qrels:
    """The judgments of a source or a workspace, whose queries go to ``settings["queries"]``."""
    from karat import formats
    from karat.workflows.offline.judgment_source import is_workspace, judged_by

    if is_workspace(qrels, source):
        need_store(Path(qrels))
    found, queries = judged_by(qrels, source, qrels_format)
    if queries is not None and not settings["queries"]:
        settings["queries"] = queries
    return formats.read_qrels(found, qrels_format) if isinstance(found, str) else found


class MachineGrades:
    """The options about grades of a machine, taken out of the settings of a command."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.grades, self.chances = settings.pop("machine_grades"), settings.pop("chances")
        if self.chances is not None and self.grades is None:
            raise UsageError("--chances belongs to --machine-grades", fix="--machine-grades FILE")


def with_machine_grades(
    results: _Result, rows: Sequence[Any], qrels: Qrels, runs: list[Any], asked: MachineGrades
) -> _Result:
    """The results with estimates from people's grades and a machine's, of the measures of rows."""
    if asked.grades is None:
        return results
    from karat.workflows.offline import machine_grades
    from karat.workflows.offline.inputs import about

    given = machine_grades.read_machine_grades(asked.grades, asked.chances)
    measures = list(dict.fromkeys(row.measure for row in rows))
    queries = about(asked.settings["queries"], qrels)
    return machine_grades.with_machine_grades(results, measures, qrels, runs, given, queries)
