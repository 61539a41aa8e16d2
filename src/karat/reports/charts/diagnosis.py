"""Chart of a diagnosis: the ranks of a query's relevant documents, stage by stage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from karat.reports.phrases.numbers import counted
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


def bump(query: str, roads: Sequence[Road]) -> DrawnChart:
    """The ranks of documents from stage to stage; what a stage did not return is at the bottom."""
    title = f"Ranks of the relevant documents of {query}"
    served = sum(road.lost_at is None for road in roads)
    said = f"{served:,} of {counted(len(roads), 'relevant document', 'relevant documents')} served."
    if len(roads) > MOST:
        said += f" Drawn: the {MOST} with the best grades."
    shown = roads[:MOST]
    wide, narrow = (to_svg(_spec(shown, narrow=narrow), title) for narrow in (False, True))
    return DrawnChart(title, said, wide, narrow)


def _spec(roads: Sequence[Road], *, narrow: bool) -> Spec:
    stages = list(roads[0].ranks)
    deepest = max([10, *(rank for road in roads for rank in road.ranks.values() if rank)])
    lost = [road for road in roads if None in road.ranks.values()]
    height = _HEIGHT + (_ROW * (len(lost) + 2) if lost else 0)
    tracks = _tracks(roads, lost, deepest)
    x = steps(len(stages), {at: short(stage, 10 if narrow else 24) for at, stage in
                            enumerate(stages)})  # fmt: skip
    ticks = {round(_height(rank, deepest)): f"{rank:,}" for rank in _TICKS if rank <= deepest}
    if lost:
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
    text = {"align": "left", "dx": 10, "fontSize": 12}
    ink = look("ink")
    tips = [(None, _tip(track.road)) for track in tracks for _ in track.heights]
    width = 200 if narrow else 760
    aside = _NEAR * len(stages) / width
    spans = [
        {"left": at - aside, "right": at + aside, "top": place - _NEAR, "bottom": place + _NEAR}
        for track in tracks
        for at, place in enumerate(track.heights)
    ]
    layers = [
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


def _tracks(roads: Sequence[Road], lost: Sequence[Road], deepest: int) -> list[_Track]:
    bottom = {road.doc_id: _HEIGHT + _ROW * (at + 2) for at, road in enumerate(lost)}
    heights: Mapping[str, Sequence[float]] = {
        road.doc_id: [
            _height(rank, deepest) if rank else bottom[road.doc_id] for rank in road.ranks.values()
        ]
        for road in roads
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
    end = "served" if road.lost_at is None else f"lost at {road.lost_at}"
    return f"{road.doc_id}, grade {road.grade:g}: {ranks}; {end}"
