"""A heartbeat: while something long is done, others are told that it goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from karat.errors import KaratError


@contextmanager
def beating(beat: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call something every few seconds, in a thread, while the block runs.

    Args:
        beat: What is called; one that fails is left out.
        every_s: Seconds between two.
    """
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(every_s):
            with suppress(KaratError):
                beat()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
