"""Sources of judgments: people, models, clicks, or an import that does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from karat.errors import InputError, UsageError, check_known
from karat.reports.phrases.numbers import first_of
from karat.store.sql import audit, golden_sets, judgments
from karat.store.sql import judgment_sources as corrections
from karat.store.sql.judgment_sources import given_in_karat
from karat.store.sql.slots import hold_raters
from karat.tables.judgments import SOURCES, UNNAMED_RATER, names_a_model
from karat.workflows.workspace.workspace import Workspace

_SHOWN = 3  # names of raters in a message


class SourceUnknown(InputError):
    """Raters of a file have names of models, and their source is not given."""

    def __init__(self, raters: Sequence[str], file: str) -> None:
        names = first_of([repr(rater) for rater in raters], _SHOWN)
        reads = "reads like a model" if len(raters) == 1 else "read like models"
        one = raters[0]
        super().__init__(
            f"the rater {names} {reads}, and grades of models do not count as people's",
            file=file,
            fix=f"state the source: '{one}=llm' for a model, '{one}=human' for a person",
        )
        self.raters = list(raters)


def sources_of(typed: Sequence[str]) -> dict[str, str]:
    """``SOURCE`` and ``RATER=SOURCE`` as a mapping from raters, "" for all others, to sources."""
    by_rater: dict[str, str] = {}
    for text in typed:
        rater, _, source = text.rpartition("=")
        rater, source = rater.strip(), checked(source.strip())
        if by_rater.setdefault(rater, source) != source:
            whose = f"for {rater!r}" if rater else "for all"
            raise UsageError(f"two sources {whose}: {by_rater[rater]} and {source}")
    return by_rater


def checked(source: str) -> str:
    check_known(source, SOURCES, f"unknown source {source!r}")
    return source


def sourced(
    judged: pl.DataFrame,  # the judgments; `rater` is null where the file names none
    rater: str | None,  # the rater of those; None if unknown
    known_sources: Mapping[str, set[str]],
    sources: Mapping[str, str],  # as `sources_of` returns them
    file: str,  # name of the file in messages
) -> pl.DataFrame:
    """Judgments of a file, each with a source and a rater.

    Args:
        known_sources: Sources of each rater's existing judgments; models keep theirs.
    """
    other = sources.get("")
    unnamed = rater is None and judged["rater"].null_count() > 0
    if unnamed and other == "human":
        raise UsageError("grades of people need a name", fix="--rater NAME")
    placeholder = other if other in ("llm", "clicks") else UNNAMED_RATER
    raters = judged["rater"].fill_null(rater or placeholder)
    chosen: dict[str, str] = {}
    unknown = []
    for name in raters.unique().sort():
        if name in sources or other is not None:
            chosen[name] = sources.get(name, other or "")
        elif name == UNNAMED_RATER:
            chosen[name] = "import"
        elif known_sources.get(name) and "human" not in known_sources[name]:
            chosen[name] = min(known_sources[name])
        elif names_a_model(name):
            unknown.append(name)
        else:
            chosen[name] = "human"
    if unknown:
        raise SourceUnknown(unknown, file)
    return judged.with_columns(rater=raters, source=raters.replace_strict(chosen))


def other_sources(known_sources: Mapping[str, set[str]], facts: pl.DataFrame) -> Iterator[str]:
    """Notes on raters who also have judgments of another source, and how to correct them."""
    for rater, source in facts.select("rater", "source").unique().sort("rater", "source").rows():
        for old in sorted(known_sources.get(rater, set()) - {source}):
            yield (
                f"{rater!r} has judgments of source {old} too, which count as before: "
                f"karat golden source {rater!r} {source} corrects them"
            )


def correct_source(opened: Workspace, rater: str, source: str, *, person: str, now: int) -> int:
    """Correct the source of a rater's imported judgments, recorded in the audit log.

    Nothing is changed or deleted: each is superseded by the same judgment with the right source.
    """
    checked(source)
    golden = opened.golden
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)
        hold_raters(connection, golden.id, [rater])
        current = judgments.current(connection, golden.id).frame
        known = current["rater"].unique().sort()
        check_known(rater, known, f"unknown rater {rater!r}", None)
        own = current.filter(pl.col("rater") == rater)
        wrong = own.filter(pl.col("source") != source)
        if not wrong.height:
            raise UsageError(f"every judgment of {rater!r} has the source {source} already")
        here = wrong.filter(
            pl.col("judgment").is_in(given_in_karat(connection, golden.id).implode())
        )
        if here.height:
            raise UsageError(
                f"{rater!r} gave {here.height:,} of these judgments in karat itself",
                fix="only imported judgments can be corrected",
            )
        before = wrong["source"].unique().sort().to_list()
        count = corrections.correct_source(connection, golden.id, wrong, source, now)
        about = {"golden set": golden.name, "judgments": count}
        about |= {"from": ", ".join(before), "to": source}
        audit.note(connection, person, "correct source", rater, now, about)
    return count
