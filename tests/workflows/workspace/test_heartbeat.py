"""A heartbeat beats while its block runs, and no longer."""

from __future__ import annotations

import threading

from karat.errors import KaratError
from karat.workflows.workspace._heartbeat import beating


def test_it_beats_while_the_block_runs_even_where_one_fails() -> None:
    enough, beats = threading.Event(), []

    def beat() -> None:
        beats.append(1)
        if len(beats) == 3:
            enough.set()
        raise KaratError("the store did not answer")

    with beating(beat, 0.001):
        assert enough.wait(5)
    count = len(beats)
    assert not threading.Event().wait(0.02)
    assert len(beats) == count
