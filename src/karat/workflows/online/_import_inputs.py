"""The files of an import: folders and patterns spelt out, and what is in each told by its hash."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from karat.errors import InputError
from karat.formats.tables.source import Source, shown

_PIECE = 1 << 20


@dataclass(frozen=True)
class Input:
    """A file to be imported.

    Attributes:
        path: Where it lies.
        name: What messages call it.
        sha256: Of its bytes.
    """

    path: Path
    name: str
    sha256: str


def spelt_out(files: Sequence[str | Path]) -> list[Path]:
    """The files that paths, folders and patterns stand for, each once, in order of their names.

    Args:
        files: Paths; of a folder all files in it and below are meant, but for hidden ones; a
            pattern as ``logs/2026-*.gz`` may hold ``**``.

    Raises:
        InputError: a path does not exist, or a folder or pattern holds no file.
    """
    found: dict[Path, None] = {}
    for each in files:
        path = Path(each)
        if path.is_dir():
            below = (one for one in path.rglob("*") if one.is_file())
            here = [one for one in below if not _hidden(one.relative_to(path))]
            what = "there is no file in this folder"
        elif path.exists() or not glob.has_magic(str(each)):
            here, what = [path], ""
        else:
            matching = map(Path, glob.glob(str(each), recursive=True))  # noqa: PTH207 - ** and all
            here = [one for one in matching if one.is_file()]
            what = "no file matches this pattern"
        if not here:
            raise InputError(what, file=shown(str(each)), fix="see how it is spelt, and where")
        found.update(dict.fromkeys(sorted(here)))
    return list(found)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_SUCCESS")) for part in path.parts)


def fingerprint(path: Path, watch: Callable[[int], None]) -> Input:
    """A file with the hash of its bytes.

    Args:
        path: The file.
        watch: Told the size of each piece as it is read.

    Raises:
        InputError: it cannot be read.
    """
    name = shown(str(path))
    if not path.is_file():
        with Source(path):  # which says what is wrong, and what may be meant
            pass
        raise InputError(
            "events are imported from files", file=name, fix="write them to a file, and name that"
        )
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
                watch(0)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=name) from None
    return Input(path, name, digest.hexdigest())
