"""Releases go on while the server runs: a round each minute."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from karat.reports.release.pipeline import sentence_of
from karat.web.framework.rounds import EVERY_S, rounds
from karat.web.framework.state import AppState
from karat.workflows.release import pipeline

LOG = logging.getLogger("karat.web")


@contextmanager
def releases_go_on(site: AppState, every_s: float = EVERY_S) -> Iterator[None]:
    """Move releases on, at once and then each minute, until the block ends.

    Each worker process does so; the lease of a release lets one at a time act, and one that is
    left at shutdown ends by itself.
    """
    with rounds("releases", partial(one_round, site, {}), every_s):
        yield


def one_round(site: AppState, problems: dict[str, str]) -> None:
    """One round of all releases; ``problems`` are those that are logged."""
    workspace = site.workspace
    for each in pipeline.run(workspace, now=site.clock()):
        for event in each.events:
            LOG.info("release %s: %s", each.name, sentence_of(event))
        if each.problem and problems.get(each.name) != each.problem:
            what = "it could not go on" if each.status is None else "the switch is not there"
            LOG.warning("release %s: %s: %s", each.name, what, each.problem)
        problems[each.name] = each.problem
