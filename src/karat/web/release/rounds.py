"""Releases go on while the server runs: a round each minute, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from karat.errors import KaratError
from karat.reports.release.pipeline import sentence_of
from karat.web.framework.state import AppState
from karat.workflows.release import pipeline

LOG = logging.getLogger("karat.web")
EVERY_S = 60.0
LAST_S = 2.0
"""Longest wait for a round at shutdown; a lease that is left ends by itself."""


@contextmanager
def releases_go_on(site: AppState, every_s: float = EVERY_S) -> Iterator[None]:
    """Move releases on, at once and then each minute, until the block ends.

    Each worker process does so; the lease of a release lets one at a time act.
    """
    stop = threading.Event()
    thread = threading.Thread(
        target=_rounds, args=(site, stop, every_s), name="releases", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(LAST_S)


def _rounds(site: AppState, stop: threading.Event, every_s: float) -> None:
    problems: dict[str, str] = {}
    while not stop.is_set():
        try:
            one_round(site, problems)
        except KaratError as error:
            LOG.error("releases: %s", error)
        except Exception:
            LOG.exception("a round of releases failed")
        stop.wait(every_s)


def one_round(site: AppState, problems: dict[str, str]) -> None:
    """One round of all releases; ``problems`` are those that are logged."""
    workspace = site.workspace
    for each in pipeline.run(workspace, now=site.clock()):
        for event in each.events:
            LOG.info("release %s: %s", each.name, sentence_of(event))
        if each.problem and problems.get(each.name) != each.problem:
            LOG.warning("release %s: the switch is not there: %s", each.name, each.problem)
        problems[each.name] = each.problem
