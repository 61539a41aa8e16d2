"""What users do to a golden set in the browser, recorded in the audit log."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import UsageError
from karat.store.sql import audit, queue
from karat.workflows.golden.agreement import IMPORT, RATERS, disagreements_at, moment
from karat.workflows.golden.editions import Frozen, freeze
from karat.workflows.golden.import_ import ImportResult, import_from
from karat.workflows.workspace.display_names import display_name
from karat.workflows.workspace.workspace import Workspace

_LONGEST = 120  # bytes of a file name
_NAMED = 50  # raters of a file listed in the audit log


def put_before_adjudicator(
    opened: Workspace,
    chosen: Sequence[tuple[str, str]] | None,
    *,
    person: str,
    now: int,
    between: str = RATERS,
) -> int:
    """Queue disagreements for adjudication; returns the number of adjudications added.

    Args:
        chosen: Query and document of each; all of kind ``between`` if None. Pairs without an open
            disagreement are ignored.
        between: ``raters``, or ``import`` for imported grades that raters contradict.
    """
    if between not in (RATERS, IMPORT):
        raise UsageError(f"unknown kind of disagreement {between!r}", fix=f"{RATERS} or {IMPORT}")
    if chosen is not None and not chosen:
        raise UsageError("no pair is selected", fix="select at least one, or send all")
    with opened.store.begin() as connection:
        open_pairs = disagreements_at(moment(connection, opened.golden.id))
        open_pairs = open_pairs.filter(pl.col("between") == between).select("query_id", "doc_id")
        if chosen is not None:
            schema = {"query_id": pl.String(), "doc_id": pl.String()}
            selected = pl.DataFrame(list(chosen), schema=schema, orient="row").unique()
            open_pairs = open_pairs.join(selected, on=["query_id", "doc_id"], how="semi")
        if not open_pairs.height:
            return 0
        count = queue.open_adjudications(connection, opened.golden.id, open_pairs, now)
        if count:
            about = {"pairs": count, "between": between}
            audit.note(connection, person, "ask adjudicator", opened.golden.name, now, about)
    return count


def freeze_audited(opened: Workspace, name: str, *, person: str, now: int) -> Frozen:
    """``editions.freeze``, recorded in the audit log."""
    return freeze(opened, name.strip(), now=now, person=person)


def import_upload(
    opened: Workspace,
    path: Path,  # the temporary file; messages name `called` instead
    called: str,  # its name on the uploader's machine
    *,
    person: str,
    now: int,
    format: str | None = None,  # noqa: A002 - as the command line has it
    rater: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> ImportResult:
    """Import an uploaded file, as ``import_.import_from``, recorded in the audit log.

    Of judgments made here it may correct the uploader's own only.
    """
    with display_name(path, called):
        imported = import_from(
            opened,
            path,
            now=now,
            format=format or None,
            rater=rater or None,
            sources=sources,
            called=called,
            may_correct={person},
        )
    about = {
        "file": called,
        "format": imported.exchange.format,
        "queries": imported.queries,
        "documents": imported.documents,
        "judgments": imported.judgments,
        "corrected": imported.corrected,
    }
    if sources:
        about["source"] = ", ".join(" ".join(filter(None, each)) for each in sources.items())
    if imported.raters:
        about["raters"] = _raters_listed(imported.raters)
    _note(opened, person, "import file", opened.golden.name, now, about)
    return imported


def file_name(called: str | None) -> str:
    """An uploaded file's name made safe to store under; its extensions stay."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", called or ""))[-1]
    safe = re.sub(r"[^\w.-]+", "_", last).lstrip(".-_")
    while len(safe.encode()) > _LONGEST:
        safe = safe[1:]
    return safe.lstrip(".-_") or "upload"


def _raters_listed(raters: Mapping[str, int]) -> str:
    """The raters with most judgments and their counts, and how many more there are."""
    first = ", ".join(f"{name} {count:,}" for name, count in list(raters.items())[:_NAMED])
    rest = len(raters) - _NAMED
    return f"{first}, and {rest:,} more" if rest > 0 else first


def _note(
    opened: Workspace, person: str, action: str, subject: str, now: int, about: dict[str, Any]
) -> None:
    with opened.store.begin() as connection:
        audit.note(connection, person, action, subject, now, about)
