"""What a user may do with a release: what the ledger would accept, and no more."""

from __future__ import annotations

import pytest
from tests.release.pipeline_cases import Release

from karat.release.pipeline import choices


def may(release: Release, by: str = "ben") -> dict[str, str]:
    return {each.kind: each.consequence for each in choices(release.state, by, release.current())}


def test_without_evidence_nothing_passes() -> None:
    assert set(may(Release())) == {"skipped", "held", "rolled_back", "reviewed"}


def test_a_stage_passes_on_its_evidence_until_the_judgments_change() -> None:
    release = Release()
    release.found()
    assert may(release)["advanced"] == "no user gets the candidate yet"
    other = release.current(judgments="judgments-2")
    assert "advanced" not in {each.kind for each in choices(release.state, "ben", other)}


def test_consequences_are_those_for_users() -> None:
    release = Release().to("ab")
    assert may(release)["rolled_back"] == "all users get the baseline again"
    assert "skipped" not in may(release), "false positives are not reviewed"
    release.add("reviewed", "anna", "looked at ten")
    assert may(release)["skipped"] == "25 % of users get it"
    assert "reviewed" not in may(release)
    assert may(Release())["rolled_back"] == "no user gets the candidate"


def test_who_may_override_is_in_the_policy() -> None:
    release = Release().to("ab")
    assert "overridden" in may(release, "anna")
    assert "overridden" not in may(release, "ben")
    release.add("overridden", "anna", "a holiday")
    assert "overridden" not in may(release, "anna")


@pytest.mark.parametrize("by", ["anna", "karat"])
def test_a_held_release_is_resumed_or_rolled_back(by: str) -> None:
    release = Release()
    release.add("held", by, "freeze")
    found = set(may(release))
    assert {"resumed", "rolled_back"} <= found
    assert not found & {"advanced", "skipped"}
    assert ("held" in found) == (by == "karat"), "a person takes over what karat holds"


def test_nothing_is_left_of_a_release_that_is_over() -> None:
    release = Release()
    release.add("rolled_back", "anna", "wrong prices")
    assert may(release) == {}
