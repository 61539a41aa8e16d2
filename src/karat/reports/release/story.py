"""The story of a release, on one page; and what releases promised next to what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from karat.reports.release.pipeline import headline, next_text, sentence_of
from karat.reports.release.review import sections as review_sections
from karat.reports.table import Column, Table, of_texts, to
from karat.reports.writers.markdown import bullets, markdown, sentence
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.tables.days import time_text
from karat.tables.release.pipeline import (
    DONE,
    Kept,
    Promise,
    Relation,
    ReleaseEvent,
    ReleaseStory,
    Signal,
    TrackRecord,
    stage_name,
)


def told(events: Sequence[ReleaseEvent]) -> list[ReleaseEvent]:
    """The events of a story: without evidence that says the same again, or that passed a stage."""
    passed = {event.because for event in events if event.kind == "advanced"}
    shown: list[ReleaseEvent] = []
    last: dict[str, str] = {}
    for event in events:
        if event.evidence is not None:
            repeated = last.get(event.stage) == event.evidence.verdict
            last[event.stage] = event.evidence.verdict
            if repeated or event.seq in passed:
                continue
        shown.append(event)
    return shown


def story_parts(story: ReleaseStory) -> Iterator[tuple[str, Table | list[str]]]:
    """Headings, each with a table or sentences."""
    yield "What happened", [f"{time_text(event.at_us)} {sentence_of(event)}"
                            for event in told(story.events)]  # fmt: skip
    skipped = [row for row in story.status.stages if row.state == "skipped"]
    if skipped:
        yield "Skipped", [f"{stage_name(row.stage)}: by {row.by}, {row.reason}" for row in skipped]
    yield "Promised and measured", promised(story)
    yield "Review before the release", [
        f"{section.title}: {section.text}" for section in review_sections(story.review)
        if section.text
    ]  # fmt: skip


def promised(story: ReleaseStory) -> Table:
    """What a release promised, and what was measured."""
    rows = list(_promises(story.promise, story.kept))
    return of_texts("", ("Promise", "Promised", "Measured"), rows, texts=3)


def _promises(promise: Promise, kept: Kept) -> Iterator[tuple[str, str, str]]:
    offline = _span(kept.offline, kept.offline_low, kept.offline_high)
    online = _span(kept.online, kept.online_low, kept.online_high, share=True)
    measured = "–" if kept.measured_ms is None else f"{kept.measured_ms:+.3g} ms"
    yield f"{promise.measure}, offline", _span(promise.gain, None, None), offline
    yield f"{kept.metric or 'decision metric'}, online", "better", online
    yield "first slice to gain", promise.slice, ""
    yield "latency, p95", f"{promise.latency_ms:+.3g} ms", measured
    yield "memory", promise.memory, ""
    yield "labelling", promise.labelling, ""
    yield "operators' attention", promise.attention, ""
    yield "rollback signal", signal_words(promise.signal), ""


def signal_words(signal: Signal) -> str:
    where = "".join(f", {name}={value}" for name, value in signal.slice.items())
    return f"{signal.metric}{where} {signal.direction} {signal.limit:.4g} in {signal.window}"


def _span(
    value: float | None, low: float | None, high: float | None, *, share: bool = False
) -> str:
    def text(number: float) -> str:
        return (f"{100 * number:+.1f} %" if share else f"{number:+.4f}").replace("-", "−")

    if value is None:
        return "–"
    ends = "" if low is None or high is None else f" ({to(text(low), text(high))})"
    return f"{text(value)}{ends}"


def show(story: ReleaseStory | TrackRecord, out: Console) -> None:
    if isinstance(story, TrackRecord):
        _show_record(story, out)
        return
    out.print(plain(headline(story.status), "bold"))
    out.print(plain(f"Next: {next_text(story.status)}"))
    for heading, part in story_parts(story):
        out.print()
        out.print(plain(heading, "bold"))
        if isinstance(part, Table):
            draw(part, out, close=True)
        else:
            for line in part:
                out.print(plain(f"  {line}"))


def to_markdown(story: ReleaseStory | TrackRecord) -> str:
    if isinstance(story, TrackRecord):
        return f"{markdown(kept_table(story))}\n{relation_text(story.relation)}\n"
    parts = [f"# {sentence(headline(story.status))}\n", f"Next: {next_text(story.status)}\n"]
    for heading, part in story_parts(story):
        parts.append(f"## {heading}\n")
        parts.append(markdown(part) if isinstance(part, Table) else bullets(part))
    return "\n".join(parts)


KEPT: Sequence[Column] = (
    Column("name", "Release", "code"),
    Column("state", "End", "words",
           value=lambda row: "finished" if row.state == DONE else stage_name(row.state)),
    Column("measure", "Measure", "words", drop=2),
    Column("promised", "Promised", "signed", digits=4),
    Column("offline", "Offline", "signed", digits=4),
    Column("metric", "Online metric", "words", drop=1, optional=True),
    Column("online", "Online", text=lambda r: _span(r.online, r.online_low, r.online_high,
                                                     share=True)),
)  # fmt: skip


def relation_text(found: Relation) -> str:
    if found.slope is None:
        return f"Relation of offline to online gains: not computed ({found.reason})."
    return (
        f"Over {found.releases} releases, .01 offline meant {found.slope / 100:+.2%} online "
        f"({(found.ci_low or 0) / 100:+.2%} to {(found.ci_high or 0) / 100:+.2%})."
    )


def kept_table(found: TrackRecord) -> Table:
    return Table("", KEPT, list(found.releases))


def _show_record(found: TrackRecord, out: Console) -> None:
    if found.releases:
        draw(kept_table(found), out, close=True)
    else:
        out.print(plain("No release has reached users and ended yet."))
    out.print(plain(relation_text(found.relation)))
