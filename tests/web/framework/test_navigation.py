"""Where an address is in the navigation."""

from __future__ import annotations

import pytest

from karat.web.framework.navigation import STAGES, place_of


@pytest.mark.parametrize(
    ("path", "stage", "tab", "golden"),
    [
        ("/", "Home", "Home", None),
        ("/golden", "Golden", "Sets", None),
        ("/golden/a%20b", "Golden", "Overview", "a b"),
        ("/golden/shop/queries/q1", "Golden", "Queries", "shop"),
        ("/golden/shop/pair", "Golden", "Pairs", "shop"),
        ("/golden/queries/changes", "Golden", "Editions", "queries"),
        ("/runs/1/queries/q1", "Offline", "Runs", None),
        ("/online/watch", "Online", "Alerts", None),
        ("/releases/hybrid", "Release", "Board", None),
        ("/judge/shop", None, None, "shop"),
        ("/account", None, None, None),
        ("/goldenx", None, None, None),
    ],
)
def test_an_address_has_its_place(
    path: str, stage: str | None, tab: str | None, golden: str | None
) -> None:
    place = place_of(path)
    assert (place.stage and place.stage.name) == stage
    assert (place.tab and place.tab.name) == tab
    assert place.golden == golden


def test_every_tab_is_its_own_place() -> None:
    for stage in STAGES:
        for tab in stage.tabs:
            place = place_of(tab.at("a/b ü"))
            assert (place.stage, place.tab) == (stage, tab)
            assert place.golden == ("a/b ü" if "{golden}" in tab.path else None)
