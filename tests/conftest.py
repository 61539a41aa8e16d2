"""What every test may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from karat.tables.certificate import Certificate, CertifiedQuery

ROOT = Path(__file__).resolve().parents[1]
# What pytest, rich and the commit of a history's point read, besides GITHUB_…, GITLAB_… and CI_….
CI = {"CI", "BUILD_NUMBER", "BUILD_SOURCEVERSION", "FORCE_COLOR", "GIT_COMMIT", "TTY_COMPATIBLE"}

# A deadline measures the machine, and two workers share it. A failure prints how to repeat it.
settings.register_profile("karat", deadline=None, print_blob=True)
settings.load_profile("karat")


@pytest.fixture(scope="session", autouse=True)
def no_ci() -> Iterator[None]:
    """Hide that a build server runs the tests: pytest and others print another text on one."""
    names = [
        name for name in os.environ if name in CI or name.startswith(("CI_", "GITHUB_", "GITLAB_"))
    ]
    kept = {name: os.environ.pop(name) for name in names}
    yield
    os.environ.update(kept)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def field_data() -> Path:
    """Real data of the field, beside the project; the test is skipped where there is none."""
    data = ROOT.parent / "shared" / "data"
    if not data.is_dir():
        pytest.skip("needs ../shared/data, which is not on this machine")
    return data


@pytest.fixture(scope="session")
def certificate() -> Certificate:
    """A certificate in form, though its numbers follow from nothing; ``replace`` its parts."""
    return Certificate(
        karat="1.0",
        measure="nDCG@2",
        scale=(0.0, 2.0),
        rel=1.0,
        depth=5,
        complete=True,
        collapse=None,
        baseline="old",
        candidate="new",
        difference=0.3,
        unjudged_low=0.1,
        unjudged_high=0.5,
        unjudged_exact=True,
        verdict="better",
        unseen=4,
        unseen_unlimited=False,
        reason="",
        queries=(
            CertifiedQuery("Q", 2.0, ("a", "b"), ("b",), {"a": 0, "b": 1.5}, 0.25, 0.5, 2.0, None),
            CertifiedQuery("é “q”", 1.0, (), ("x\u2028",), {}, -0.125, 1 / 3, 0.0, 3.0),
        ),
    )
