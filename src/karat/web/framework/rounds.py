"""What goes on while the server runs: a round each minute, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from karat.errors import KaratError

LOG = logging.getLogger("karat.web")
EVERY_S = 60.0
LAST_S = 2.0
"""Longest wait for a round at shutdown."""


@contextmanager
def rounds(name: str, one_round: Callable[[], None], every_s: float = EVERY_S) -> Iterator[None]:
    """Do a round, at once and then each minute, until the block ends; errors are logged."""
    stop = threading.Event()

    def go() -> None:
        while not stop.is_set():
            try:
                one_round()
            except KaratError as error:
                LOG.error("%s: %s", name, error)
            except Exception:
                LOG.exception("a round of %s failed", name)
            stop.wait(every_s)

    thread = threading.Thread(target=go, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(LAST_S)
