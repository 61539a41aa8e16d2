"""Chart of a diagnosis: the ranks of a query's relevant documents, stage by stage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from karat.diagnosis.waterfall import SERVED
from karat.reports.charts.drawing import (
    INK,
    Spec,
    areas,
    layer,
    look,
    name,
    number,
    short,
    spec,
    steps,
    to_svg,
)
from karat.reports.html.figures import DrawnChart
from karat.reports.phrases.numbers import counted, milliseconds
from karat.reports.table import DASH
from karat.tables.diagnosis.results import Road

MOST = 12
"""Documents in a chart, the best grades first."""
_HEIGHT, _ROW = 190, 15  # pixels of all ranks, and of a document that a stage did not return
_TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_NEAR = 7  # pixels around a point that have its tooltip


@dataclass(frozen=True)
class _Track:
    """A document: its height in pixels at each stage, and where its label is."""

    road: Road
    heights: Sequence[float]
    label: float

    @property
    def ink(self) -> str:
        if self.road.lost_at is None:
            return INK["up"]
        return INK["down" if any(self.road.ranks.values()) else "quiet"]


def bump(
    query: str,
    roads: Sequence[Road],
    others: Sequence[Road] = (),
    times: Mapping[str, int] | None = None,
    run: str = "",
) -> DrawnChart:
    """The ranks of documents from stage to stage; what a stage did not return is at the bottom.

    ``others`` were served, too, and are in grey; ``times`` are microseconds of stages.
    """
    title = f"Ranks of the relevant documents of {query}" + (f" in {run}" if run else "")
    served = sum(road.lost_at is None for road in roads)
    said = f"{served:,} of {counted(len(roads), 'relevant document')} served."
    if len(roads) > MOST:
        said += f" Drawn: the {MOST} with the best grades."
    if others:
        more = counted(len(others), "other served document")
        said += f" In grey: {more}."
    spent = {stage: f"{milliseconds(us)} ms" for stage, us in (times or {}).items()}
    if spent:
        said += f" Times: {', '.join(f'{stage} {time}' for stage, time in spent.items())}."
    shown = roads[:MOST]
    wide, narrow = (
        to_svg(_spec(shown, others, spent, narrow=narrow), title) for narrow in (False, True)
    )
    return DrawnChart(title, said, wide, narrow)


def _spec(
    roads: Sequence[Road], others: Sequence[Road], spent: Mapping[str, str], *, narrow: bool
) -> Spec:
    stages = list([*roads, *others][0].ranks)
    deepest = max([10, *(rank for road in (*roads, *others) for rank in road.ranks.values()
                         if rank)])  # fmt: skip
    lost = [road for road in roads if None in road.ranks.values()]
    gaps = bool(lost) or any(None in road.ranks.values() for road in others)
    height = _HEIGHT + (_ROW * (len(lost) + 2) if gaps else 0)
    tracks = _tracks(roads, lost, deepest)
    grey = [_Track(road, _heights(road, deepest, _HEIGHT + 2 * _ROW), 0) for road in others]
    x = steps(len(stages), {at: _label(at, stage, spent.get(stage), narrow and len(stages) > 3)
                            for at, stage in enumerate(stages)})  # fmt: skip
    ticks = {round(_height(rank, deepest)): f"{rank:,}" for rank in _TICKS if rank <= deepest}
    if gaps:
        ticks[round(_HEIGHT + 2 * _ROW)] = "none"
    axis = {"values": list(ticks), "labelExpr": f"{json.dumps(ticks)}[datum.value]"}
    y = number("y", [height, -4], axis | {"labelOverlap": False}, "rank")
    points = [
        {"at": at, "y": place, "ink": track.ink, "track": number_}
        for number_, track in enumerate(tracks)
        for at, place in enumerate(track.heights)
    ]
    labels = [
        {"at": len(stages) - 1, "y": track.label, "ink": track.ink,
         "text": short(track.road.doc_id, 13 if narrow else 34)}
        for track in tracks
    ]  # fmt: skip
    quiet = [
        {"at": at, "y": place, "track": number_}
        for number_, track in enumerate(grey)
        for at, place in enumerate(track.heights)
    ]
    text = {"align": "left", "dx": 10, "fontSize": 12}
    ink = look("ink")
    tips = [(None, _tip(track.road)) for track in (*grey, *tracks) for _ in track.heights]
    width = 200 if narrow else 760
    aside = _NEAR * len(stages) / width
    spans = [
        {"left": at - aside, "right": at + aside, "top": place - _NEAR, "bottom": place + _NEAR}
        for track in (*grey, *tracks)
        for at, place in enumerate(track.heights)
    ]
    faint = {"stroke": INK["quiet"], "fill": INK["quiet"], "strokeOpacity": 0.3, "fillOpacity": 0.4}
    layers = [
        *([layer(quiet, "line", {"strokeWidth": 1} | faint | {"fill": None}, x=x, y=y,
                 detail=name("track")),
           layer(quiet, "point", {"size": 25, "filled": True} | faint, x=x, y=y)]
          if quiet else []),
        layer(points, "line", {"strokeWidth": 2, "strokeOpacity": 0.8}, x=x, y=y, color=ink,
              detail=name("track")),
        layer(points, "point", {"size": 55, "filled": True, "opacity": 1}, x=x, y=y, color=ink),
        layer(labels, "text", text, x=x, y=y, text=name("text"), color=ink),
        areas(tips, spans, x=x | {"field": "left"}, x2={"field": "right"},
              y=y | {"field": "top"}, y2={"field": "bottom"}),
    ]  # fmt: skip
    return spec(layers, (width, height), padding=(4, 14, 10, 4))


def _height(rank: int, deepest: int) -> float:
    """The height of a rank, the first at 0: by its logarithm, as the first ranks matter most."""
    return _HEIGHT * math.log(rank) / math.log(deepest)


def _label(at: int, stage: str, time: str | None, crowded: bool) -> list[str]:
    """The lines below a stage; where they are crowded, without its time, every second one lower."""
    if crowded:
        return ["\u00a0", short(stage, 10)] if at % 2 else [short(stage, 10)]
    return [short(stage, 24), *([time] if time else [])]


def _heights(road: Road, deepest: int, bottom: float) -> list[float]:
    return [_height(rank, deepest) if rank else bottom for rank in road.ranks.values()]


def _tracks(roads: Sequence[Road], lost: Sequence[Road], deepest: int) -> list[_Track]:
    bottom = {road.doc_id: _HEIGHT + _ROW * (at + 2) for at, road in enumerate(lost)}
    heights: Mapping[str, Sequence[float]] = {
        road.doc_id: _heights(road, deepest, bottom.get(road.doc_id, 0)) for road in roads
    }
    tracks, free = [], -math.inf
    for road in sorted(roads, key=lambda road: heights[road.doc_id][-1]):
        own = heights[road.doc_id]
        label = max(own[-1], free)
        free = label + _ROW - 1
        tracks.append(_Track(road, own, label))
    return tracks


def _tip(road: Road) -> str:
    ranks = ", ".join(f"{stage} {rank or DASH}" for stage, rank in road.ranks.items())
    ends = {None: "served", SERVED: "not served"}
    end = ends.get(road.lost_at, f"lost at {road.lost_at}")
    grade = "not judged" if road.grade is None else f"grade {road.grade:g}"
    return f"{road.doc_id}, {grade}: {ranks}; {end}"
