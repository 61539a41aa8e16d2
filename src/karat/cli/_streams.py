"""Standard output and standard error that never interrupt a command.

A verdict does not depend on its reader: a command whose output is no longer read (``| head -1``)
or cannot be written (a full disk) still finishes, with its history, report and notification.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from pathlib import Path
from typing import IO, Any, cast


class Stream(io.BufferedIOBase):
    """Bytes to a standard stream; discarded after the first error."""

    def __init__(self, text: Any) -> None:
        """Write to the raw stream below ``text``; a reference keeps that open."""
        self._text = text
        self._raw = _raw(text)
        self._open = True
        self.lost: OSError | None = None

    def write(self, data: Any, /) -> int:
        left = memoryview(data).cast("B")
        size = left.nbytes
        while self._open and left:
            try:
                count = self._raw.write(left)
            except OSError as error:
                self._open = False
                self.lost = None if _gone(error) else error
                break
            if count is None:  # a full pipe that does not block
                select.select([], [self._raw], [])
            left = left[count or 0 :]
        return size

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        return bool(self._raw.isatty())


def guard() -> Stream | None:
    """Make ``sys.stdout`` and ``sys.stderr`` UTF-8 streams that never raise.

    None if standard output is not a stream of the operating system, as in tests.
    """
    if sys.stdout is None or sys.stderr is None:
        _fill_closed()
    sys.stderr, _ = _guarded(sys.stderr)
    sys.stdout, stream = _guarded(sys.stdout)
    return stream


def _guarded(text: Any) -> tuple[Any, Stream | None]:
    if not isinstance(_raw(text), io.RawIOBase):
        if hasattr(text, "reconfigure"):
            text.reconfigure(encoding="utf-8", errors="replace")
        return text, None
    text.flush()
    stream = Stream(text)
    wrapped = io.TextIOWrapper(
        cast(IO[bytes], stream),
        encoding="utf-8",
        errors="replace",
        line_buffering=text.line_buffering or text.write_through,
    )
    return wrapped, stream


def _raw(text: Any) -> Any:
    buffer = getattr(text, "buffer", None)
    return getattr(buffer, "raw", buffer)  # unbuffered Python (-u) has no raw stream


def _fill_closed() -> None:
    """Open closed standard streams (``>&-``) on the null device: else the next file reuses them."""
    number = 0
    while number < 3:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    # A stream that was closed at the start is None, and print would write to the other one instead.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _gone(error: OSError) -> bool:
    """Whether the reader closed the pipe, which Windows reports as an invalid argument."""
    windows = sys.platform == "win32" and error.errno == errno.EINVAL
    return isinstance(error, ConnectionError) or windows
