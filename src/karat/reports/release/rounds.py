"""What one round of all releases did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from karat.reports.release.pipeline import next_text, sentence_of
from karat.reports.writers.markdown import bullets
from karat.reports.writers.plain import plain
from karat.tables.release.pipeline import ReleaseRun, stage_name


def lines(runs: Sequence[ReleaseRun]) -> Iterator[str]:
    """What a round did, a line for each step and problem."""
    for each in runs:
        if each.status is None:
            yield f"{each.name}: {each.problem or 'another round has it'}"
            continue
        for event in each.events:
            if event.kind != "switched":
                yield f"{each.name}: {sentence_of(event)}"
        if each.problem:
            yield f"{each.name}: the switch is not where it should be: {each.problem}"
        if not each.status.over:
            yield f"{each.name}: {stage_name(each.status.state)}; {next_text(each.status)}"


def show(runs: Sequence[ReleaseRun], out: Console) -> None:
    for line in lines(runs):
        out.print(plain(line))


def to_markdown(runs: Sequence[ReleaseRun]) -> str:
    return bullets(list(lines(runs)))
