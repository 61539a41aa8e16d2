"""Noted: what people do to a golden set from the browser, with their name beside it."""

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
from karat.workflows.golden.import_ import TakenIn, take_in
from karat.workflows.workspace.display_names import told_as
from karat.workflows.workspace.workspace import Workspace

_LONGEST = 120  # characters of a name of a file
_NAMED = 50  # raters of a file whom the audit names


def put_before_adjudicator(
    opened: Workspace,
    chosen: Sequence[tuple[str, str]] | None,
    *,
    person: str,
    now: int,
    between: str = RATERS,
) -> int:
    """Put disagreements into the queue of adjudicators.

    Args:
        opened: The workspace.
        chosen: Query and document of each; all there are between ``between`` if None. What is no
            disagreement, or no more, is left out.
        person: Who asks for it.
        now: Microseconds UTC.
        between: ``raters``, or ``import`` for imported grades that raters contradict.

    Returns:
        How many are new there.

    Raises:
        UsageError: none is chosen, or an unknown ``between``.
    """
    if between not in (RATERS, IMPORT):
        raise UsageError(f"disagreements are between raters, or with an import, not {between!r}")
    if chosen is not None and not chosen:
        raise UsageError("no pair is selected", fix="select at least one, or send all")
    with opened.store.begin() as connection:
        found = disagreements_at(moment(connection, opened.golden.id))
        found = found.filter(pl.col("between") == between).select("query_id", "doc_id")
        if chosen is not None:
            schema = {"query_id": pl.String(), "doc_id": pl.String()}
            wanted = pl.DataFrame(list(chosen), schema=schema, orient="row").unique()
            found = found.join(wanted, on=["query_id", "doc_id"], how="semi")
        if not found.height:
            return 0
        count = queue.open_adjudications(connection, opened.golden.id, found, now)
        if count:
            about = {"pairs": count, "between": between}
            audit.note(connection, person, "ask adjudicator", opened.golden.name, now, about)
    return count


def freeze_noted(opened: Workspace, name: str, *, person: str, now: int) -> Frozen:
    """Make an edition, as ``editions.freeze``, and note who made it."""
    return freeze(opened, name.strip(), now=now, person=person)


def take_upload(
    opened: Workspace,
    path: Path,
    called: str,
    *,
    person: str,
    now: int,
    format: str | None = None,  # noqa: A002 - as the command line has it
    rater: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> TakenIn:
    """Import a file that somebody sent, as ``exchanging.take_in``, and note who sent it.

    Of what people judged here themselves it corrects the sender's own, and nobody else's.

    Args:
        opened: The workspace.
        path: Where it lies for now; messages do not name this place.
        called: What its sender calls it.
        person: Who sent it.
        now: Microseconds UTC.
        format: As in ``take_in``.
        rater: As in ``take_in``.
        sources: As in ``take_in``.

    Raises:
        InputError: as ``take_in`` raises it, about ``called``; or it would correct what another
            person judged here.
        UsageError: as ``take_in``.
    """
    with told_as(path, called):
        done = take_in(
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
        "format": done.exchange.format,
        "queries": done.queries,
        "documents": done.documents,
        "judgments": done.judgments,
        "corrected": done.corrected,
    }
    if sources:
        about["source"] = ", ".join(" ".join(filter(None, each)) for each in sources.items())
    if done.raters:
        about["raters"] = _told(done.raters)
    _note(opened, person, "import file", opened.golden.name, now, about)
    return done


def file_name(called: str | None) -> str:
    """A stranger's name of a file as one that is safe to keep it under; its endings stay."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", called or ""))[-1]
    safe = re.sub(r"[^\w.-]+", "_", last).lstrip(".-_")
    while len(safe.encode()) > _LONGEST:
        safe = safe[1:]
    return safe.lstrip(".-_") or "upload"


def _told(raters: Mapping[str, int]) -> str:
    """Raters and how many judgments they gave: those of most, and how many more there are."""
    first = ", ".join(f"{name} {count:,}" for name, count in list(raters.items())[:_NAMED])
    rest = len(raters) - _NAMED
    return f"{first}, and {rest:,} more" if rest > 0 else first


def _note(
    opened: Workspace, person: str, action: str, subject: str, now: int, about: dict[str, Any]
) -> None:
    with opened.store.begin() as connection:
        audit.note(connection, person, action, subject, now, about)
