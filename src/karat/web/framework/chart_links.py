"""Charts of a report on a page, with links from measures, slices and queries."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from karat.reports.html.figures import DrawnChart
from karat.workflows.workspace.stored_views import Drawn, link_marks, slice_key


@dataclass(frozen=True)
class Charts:
    measures: list[DrawnChart]
    sliced: Mapping[str, DrawnChart]
    spread: list[DrawnChart]

    def of_slice(self, candidate: str | None, attribute: str) -> DrawnChart | None:
        return self.sliced.get(slice_key(candidate, attribute))


def charts(drawn: Drawn, address: Callable[[Mapping[str, str]], str]) -> Charts:
    """Add links to charts; ``address`` gives the target for a measure, slice or query."""

    def linked(figure: DrawnChart) -> DrawnChart:
        wide, narrow = (
            link_marks(svg, drawn.leads, lambda target: html.escape(address(target)))
            for svg in (figure.wide, figure.narrow)
        )
        return replace(figure, wide=wide, narrow=narrow)

    return Charts(
        [linked(figure) for figure in drawn.measures],
        {key: linked(figure) for key, figure in drawn.sliced.items()},
        [linked(figure) for figure in drawn.spread],
    )
