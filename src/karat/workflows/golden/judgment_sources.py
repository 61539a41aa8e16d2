"""Where judgments come from: people, models, clicks, or an import that does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from karat.errors import Advice, InputError, UsageError, nearest
from karat.golden.machines import names_a_model
from karat.store.sql import audit, golden_sets, judgments
from karat.store.sql import judgment_sources as corrections
from karat.store.sql.rated_here import given_here
from karat.store.sql.slots import hold_raters
from karat.tables.judgments import NOBODY, SOURCES
from karat.workflows.workspace.workspace import Workspace

_SHOWN = 3  # names of raters in a message


class SourceUnknown(InputError):
    """Raters of a file have the names of models, and it is not said whether they are.

    Attributes:
        raters: Their names.
    """

    def __init__(self, raters: Sequence[str], file: str) -> None:
        names = ", ".join(map(repr, raters[:_SHOWN]))
        more = f" and {len(raters) - _SHOWN:,} more" if len(raters) > _SHOWN else ""
        reads = "reads like a model" if len(raters) == 1 else "read like models"
        one = raters[0]
        super().__init__(
            f"the rater {names}{more} {reads}, and grades of models do not count as people's",
            file=file,
            fix=Advice(
                f"--source '{one}=llm', or --source '{one}=human' if a person is called so",
                page="choose who graded: a model (source llm), or people (human); a file of both "
                "is to be split",
            ),
        )
        self.raters = list(raters)


def sources_of(typed: Sequence[str]) -> dict[str, str]:
    """``SOURCE`` and ``RATER=SOURCE`` as a mapping from raters, "" for all others, to sources.

    Raises:
        UsageError: there is no such source, or two of one rater.
    """
    found: dict[str, str] = {}
    for each in typed:
        rater, _, source = each.rpartition("=")
        rater, source = rater.strip(), checked(source.strip())
        if found.setdefault(rater, source) != source:
            whose = f"of {rater!r}" if rater else "of all"
            raise UsageError(f"two sources {whose}: {found[rater]} and {source}")
    return found


def checked(source: str) -> str:
    """The source, if it is one.

    Raises:
        UsageError: it is none.
    """
    if source not in SOURCES:
        raise UsageError(
            f"unknown source {source!r}",
            nearest=nearest(source, SOURCES, 1),
            fix=f"one of {', '.join(SOURCES)}",
        )
    return source


def sourced(
    said: pl.DataFrame,
    rater: str | None,
    there: Mapping[str, set[str]],
    sources: Mapping[str, str],
    file: str,
) -> pl.DataFrame:
    """Judgments of a file with their source, and a rater each.

    Args:
        said: What the file says; ``rater`` is null where it names nobody.
        rater: Who judged there; None if that is not known.
        there: The sources of each rater's judgments before: those of models keep theirs.
        sources: As ``sources_of`` gives them.
        file: What messages call the file.

    Raises:
        SourceUnknown: a rater has the name of a model, and ``sources`` does not say.
        UsageError: grades of people, and no name.
    """
    other = sources.get("")
    unnamed = rater is None and said["rater"].null_count() > 0
    if unnamed and other == "human":
        raise UsageError("grades of people need a name", fix="--rater NAME")
    nobody = other if other in ("llm", "clicks") else NOBODY
    raters = said["rater"].fill_null(rater or nobody)
    chosen: dict[str, str] = {}
    unknown = []
    for name in raters.unique().sort():
        if name in sources or other is not None:
            chosen[name] = sources.get(name, other or "")
        elif name == NOBODY:
            chosen[name] = "import"
        elif there.get(name) and "human" not in there[name]:
            chosen[name] = min(there[name])
        elif names_a_model(name):
            unknown.append(name)
        else:
            chosen[name] = "human"
    if unknown:
        raise SourceUnknown(unknown, file)
    return said.with_columns(rater=raters, source=raters.replace_strict(chosen))


def other_sources(there: Mapping[str, set[str]], facts: pl.DataFrame) -> Iterator[str]:
    """What to do about raters whose judgments are stored under another source as well.

    Args:
        there: The sources of each rater's judgments before.
        facts: What the file adds.
    """
    for rater, source in facts.select("rater", "source").unique().sort("rater", "source").rows():
        for old in sorted(there.get(rater, set()) - {source}):
            yield (
                f"{rater!r} has judgments of source {old} too, which count as before: "
                f"karat golden source {rater!r} {source} corrects them"
            )


def correct_source(opened: Workspace, rater: str, source: str, *, person: str, now: int) -> int:
    """Correct where the imported judgments of a rater come from, and note who did so.

    Nothing is changed or deleted: each is superseded by the same judgment of the right source.

    Args:
        opened: The workspace.
        rater: Whose judgments.
        source: One of ``tables.judgments.SOURCES``.
        person: Who corrects, as the audit calls them.
        now: Microseconds UTC.

    Returns:
        How many judgments were corrected.

    Raises:
        UsageError: there is no such source or rater, the rater judged here, or nothing differs.
    """
    checked(source)
    golden = opened.golden
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)
        hold_raters(connection, golden.id, [rater])
        there = judgments.current(connection, golden.id).frame
        own = there.filter(pl.col("rater") == rater)
        if not own.height:
            raise UsageError(
                f"no judgment is by {rater!r}",
                nearest=nearest(rater, there["rater"].unique().sort().to_list(), 1),
            )
        wrong = own.filter(pl.col("source") != source)
        if not wrong.height:
            raise UsageError(f"every judgment of {rater!r} is of source {source} already")
        here = wrong.filter(pl.col("judgment").is_in(given_here(connection, golden.id).implode()))
        if here.height:
            raise UsageError(
                f"{rater!r} gave {here.height:,} of these judgments in karat, where people judge",
                fix="only imported judgments can be corrected",
            )
        was = wrong["source"].unique().sort().to_list()
        count = corrections.correct_source(connection, golden.id, wrong, source, now)
        about = {"golden set": golden.name, "judgments": count}
        about |= {"from": ", ".join(was), "to": source}
        audit.note(connection, person, "correct source", rater, now, about)
    return count
