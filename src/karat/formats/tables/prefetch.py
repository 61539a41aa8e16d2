"""An ordered map in two threads, a few items ahead.

Polars and NumPy release the GIL, so parsing, casting and the next read overlap. The small number of
items limits memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")

_THREADS = 2
_AHEAD = 3


def ahead(work: Callable[[Item], Done], items: Iterable[Item]) -> Iterator[Done]:
    """``map(work, items)``, in order, computed a few items ahead."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[Done]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
