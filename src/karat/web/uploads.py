"""Uploads: a file that a form sends, as a file that is gone when it has been read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import UploadFile

from karat.errors import UsageError
from karat.workflows.noted import file_name

_LONGEST = 200  # characters of a name of a file


@contextmanager
def uploaded(sent: UploadFile | None, what: str = "file") -> Iterator[tuple[Path, str]]:
    """Where an upload lies for now, under a safe name, and what its sender calls it.

    Args:
        sent: What the form sent.
        what: What the form asks for.

    Raises:
        UsageError: nothing was sent.
    """
    if sent is None or not sent.filename:
        raise UsageError(f"no {what} is chosen", fix="choose a file")
    called = Path(sent.filename.replace("\\", "/")).name[:_LONGEST] or what
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        path = Path(folder) / file_name(sent.filename)
        with path.open("wb") as out:
            shutil.copyfileobj(sent.file, out, 1 << 20)
        yield path, called
