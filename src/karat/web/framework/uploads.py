"""Uploads: a file that a form sends, as a file that is gone when it has been read.

All temporary files of a server lie in a folder of its process: those of one that was killed, which
removes nothing, are removed by the next that starts.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import UploadFile

from karat.errors import UsageError
from karat.workflows.golden.audited import file_name

_OWN, _LOCK = "karat-serve-", "lock"
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


@contextmanager
def own_place() -> Iterator[None]:
    """Let temporary files lie in a folder of this process, and remove those of processes killed.

    A process holds a lock in its folder as long as it lives, however it ends. On Windows nothing
    changes: there, what is open cannot be removed by others, and locks lie among temporary files.
    """
    folder = None if sys.platform == "win32" else _swept()
    if folder is None:
        yield
        return
    import fcntl

    before = tempfile.tempdir
    try:
        with (folder / "locking").open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            (folder / "locking").rename(folder / _LOCK)  # before that, nobody looks at it
            tempfile.tempdir = str(folder)
            yield
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)


def _swept() -> Path | None:
    """A new folder beside those in use; None if there can be none, which uploads will say."""
    try:
        for left in Path(tempfile.gettempdir()).glob(f"{_OWN}*/{_LOCK}"):
            _remove(left)
        return Path(tempfile.mkdtemp(prefix=_OWN))
    except OSError:
        return None


def _remove(lock: Path) -> None:
    """Remove a folder of ours, if no process holds its lock."""
    import fcntl

    folder = lock.parent
    try:
        # Others may write in the place of all temporary files too.
        if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
            return
        with lock.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return  # it is held, or gone
