"""The server watches the event log: each hour, if it has a new window."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from karat.reports.online.watch import verdict_text
from karat.web.framework.rounds import EVERY_S, rounds
from karat.web.framework.state import AppState
from karat.web.online.log import ENDLESS_S, start_computing
from karat.web.online.watch import remember, remembering, watched_of
from karat.workflows.online.log_requests import NothingImported, log_of, watch_of
from karat.workflows.online.watch import last_whole_window, window_end

LOG = logging.getLogger("karat.web")


@dataclass
class Watches:
    """What the server has watched."""

    next_us: int = 0  # when it watches again, microseconds UTC
    window: str = ""  # the last window that could be compared


@contextmanager
def watch_goes_on(site: AppState, every_s: float = EVERY_S) -> Iterator[None]:
    """Watch the log as ``[watch]`` of ``karat.toml`` says, until the block ends.

    Each worker process does so: the numbers are computed once, and an alert is opened once.
    """
    if not site.workspace.workspace.watch.every_us:
        yield
        return
    with rounds("watch", partial(one_round, site, Watches()), every_s):
        yield


def one_round(site: AppState, watches: Watches) -> None:
    """Watch the last window of the log if it is new, at most as often as configured."""
    config, now = site.workspace.workspace.watch, site.clock()
    if now < watches.next_us:
        return
    try:
        log = log_of(site.workspace)
    except NothingImported:
        return
    if log.last_us is None:
        return
    window = last_whole_window(config.window, log)
    if window.label == watches.window:
        return
    watches.next_us = now + config.every_us
    asked, _ = watch_of(site.workspace, log, config.window, window_end(window), config.by)
    answer = start_computing(site, log, remembering(site, asked), ENDLESS_S)
    if answer is None:
        return
    found = watched_of(answer)
    LOG.info("watch: %s: %s", found.window, verdict_text(found))
    remember(site, log, found)  # it may have been computed for something else
    if found.changes:
        watches.window = window.label
