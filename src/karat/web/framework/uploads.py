"""Files of forms and downloads, as temporary files.

Temporary files of a server are in a folder of its process: the next server to start removes
those of processes that were killed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import UploadFile
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from karat.errors import UsageError
from karat.workflows.golden.import_ import file_name

_OWN, _LOCK = "karat-serve-", "lock"
_LONGEST = 200  # characters of a file name


@contextmanager
def uploaded(sent: UploadFile | None, what: str = "file") -> Iterator[tuple[Path, str]]:
    """Store an upload temporarily: its path under a safe name, and the sender's name for it."""
    if sent is None or not sent.filename:
        raise UsageError(f"no {what} was chosen", fix="choose a file")
    called = Path(sent.filename.replace("\\", "/")).name[:_LONGEST] or what
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        path = Path(folder) / file_name(sent.filename)
        with path.open("wb") as out:
            shutil.copyfileobj(sent.file, out, 1 << 20)
        yield path, called


def file_response(write: Callable[[Path], tuple[Path, dict[str, str]]]) -> FileResponse:
    """A file that ``write`` makes in a temporary folder, and headers; removed once it is sent."""
    folder = tempfile.mkdtemp(prefix="karat-")
    try:
        path, headers = write(Path(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(
        path,
        media_type="application/octet-stream",  # so that no browser runs or displays it
        filename=path.name,
        headers=headers,
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )


@contextmanager
def own_place() -> Iterator[None]:
    """Use a temporary folder of this process, and remove those of killed processes.

    A process locks its folder for as long as it lives. Windows keeps the default folder: there,
    open files cannot be removed.
    """
    folder = None if sys.platform == "win32" else _fresh_folder()
    if folder is None:
        yield
        return
    import fcntl

    before = tempfile.tempdir
    try:
        with (folder / "locking").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "locking").rename(folder / _LOCK)  # until then, no process looks at it
            tempfile.tempdir = str(folder)
            yield
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)


def _fresh_folder() -> Path | None:
    """Remove abandoned folders and make a new one; None if that fails (uploads will report it)."""
    try:
        for lock in Path(tempfile.gettempdir()).glob(f"{_OWN}*/{_LOCK}"):
            _remove(lock)
        return Path(tempfile.mkdtemp(prefix=_OWN))
    except OSError:
        return None


def _remove(lock: Path) -> None:
    """Remove a folder of ours, unless a process holds its lock."""
    import fcntl

    folder = lock.parent
    try:
        # Other users can write to the folder of temporary files too.
        if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
            return
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return  # in use, or gone
