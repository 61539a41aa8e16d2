"""Charts of a report on a page: what is pointed at in them leads to addresses."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from karat.reports.html.figures import Figure
from karat.workflows.workspace.stored_views import Drawn, slice_key, with_leads


@dataclass(frozen=True)
class Charts:
    """The charts of a page.

    Attributes:
        measures: Every measure with its interval.
        sliced: As ``Drawn.sliced``.
        spread: What each query adds, or how many have which value.
    """

    measures: list[Figure]
    sliced: Mapping[str, Figure]
    spread: list[Figure]

    def of_slice(self, candidate: str | None, attribute: str) -> Figure | None:
        """The chart of one attribute, if there is one."""
        return self.sliced.get(slice_key(candidate, attribute))


def charts(drawn: Drawn, address: Callable[[Mapping[str, str]], str]) -> Charts:
    """Charts with addresses.

    Args:
        drawn: As they were drawn.
        address: Where a measure, a slice or a query leads.
    """

    def led(figure: Figure) -> Figure:
        wide, narrow = (
            with_leads(svg, drawn.leads, lambda said: html.escape(address(said)))
            for svg in (figure.wide, figure.narrow)
        )
        return replace(figure, wide=wide, narrow=narrow)

    return Charts(
        [led(each) for each in drawn.measures],
        {key: led(each) for key, each in drawn.sliced.items()},
        [led(each) for each in drawn.spread],
    )
