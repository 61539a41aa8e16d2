"""A gate in a real browser: a run is checked, and what decides is in the first screen."""

from __future__ import annotations

from pathlib import Path

from tests.web.conftest import LAPTOP, PHONE, PageOf, axe, sound


def test_a_run_is_checked_and_its_rule_is_in_the_first_screen(
    page_of: PageOf, workspace: Path
) -> None:
    # Reversed rankings: of the two runs, one is worse than the other.
    (workspace / "gate.toml").write_text('[[rule]]\nmeasure = "nDCG@5"\nmax_drop = 0.01\n')
    with page_of("egon", "engineer", **LAPTOP) as page:
        page.goto("/releases")
        page.get_by_role("link", name="Gates").click()
        page.get_by_label("Candidate").first.select_option(label="new")
        page.get_by_label("Baseline").first.select_option(label="old")
        sound(page)
        page.get_by_role("button", name="Check").click()
        page.wait_for_url("**/gates/1")
        head = page.get_by_role("heading", name="Hold: nDCG@5 drops by at most 0.01")
        assert head.is_visible()
        sound(page, on_both=True)
        assert axe(page) == []
        page.set_viewport_size(PHONE["viewport"])
        page.goto("/")
        page.get_by_role("link", name="Gate of new failed").click()
        page.wait_for_url("**/gates/1")
        page.wait_for_load_state()  # with its style sheet
        box = head.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < PHONE["viewport"]["height"]
