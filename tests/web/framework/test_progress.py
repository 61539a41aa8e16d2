"""Jobs: how far they are, and the outcome of those that are cancelled."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from karat.errors import InputError
from karat.web.framework.progress import Job, Progress, begin, cancel, last, run
from karat.web.framework.state import AppState
from karat.workflows.offline.stages import Cancelled


@pytest.fixture
def site(app: FastAPI) -> AppState:
    state: AppState = app.state.site
    return state


def test_a_job_whose_result_is_elsewhere_leaves_no_state(site: AppState) -> None:
    seen = []

    def work(progress: Progress) -> None:
        progress("reading", 1, 4)
        seen.append(last(site, "one"))

    assert run(site, "one", "Numbers", work, 60)
    assert seen[0] is not None
    assert (seen[0].state, seen[0].stage, seen[0].done, seen[0].total) == (
        "running", "reading", 1, 4,
    )  # fmt: skip
    assert last(site, "one") is None


@pytest.mark.parametrize("remembered_s", [0.0, 60.0])
def test_a_cancelled_job_is_not_started_again_while_that_is_remembered(
    site: AppState, remembered_s: float
) -> None:
    started: list[int] = []

    def work(progress: Progress) -> None:
        started.append(1)
        if len(started) == 1:
            cancel(site, "one")
        progress("reading", 1, 4)

    with pytest.raises(Cancelled):
        run(site, "one", "Numbers", work, 60, remembered_s=remembered_s)
    job = last(site, "one")
    assert job is not None
    assert job.state == "cancelled"
    if remembered_s:
        with pytest.raises(Cancelled):
            run(site, "one", "Numbers", work, 60, remembered_s=remembered_s)
    else:
        assert run(site, "one", "Numbers", work, 60, remembered_s=remembered_s)
    assert len(started) == (1 if remembered_s else 2)


def test_a_job_that_is_stopping_in_another_process_is_not_started(site: AppState) -> None:
    now = site.clock()
    Progress(site, Job("one", "Numbers", "running", "reading", 1, 4, now, now, now)).write()
    cancel(site, "one")
    job = last(site, "one")
    assert job is not None
    assert job.state == "cancelling"
    assert not run(site, "one", "Numbers", lambda _: pytest.fail("it was started"), 60)


def test_an_error_is_raised_and_is_in_the_state(site: AppState) -> None:
    def work(_progress: Progress) -> None:
        raise InputError("nothing is judged yet")

    with pytest.raises(InputError, match="nothing is judged yet"):
        run(site, "one", "Numbers", work, 60)
    job = begin(site, "two", "Numbers", work, 60)  # type: ignore[arg-type]
    assert (job.state, job.error) == ("failed", "nothing is judged yet")
