"""BEIR folders in ZIP files: only their own files are unpacked, temporarily."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from karat.errors import InputError, but
from karat.formats.exchange.source_file import (
    BOMB_FROM,
    MOST,
    ZIP,
    check_size,
    files_of,
    unzipping,
)
from karat.formats.tables.folder import one_split
from karat.formats.tables.source import BOMB_RATIO

_PART = re.compile(r"((queries|corpus)\.jsonl|qrels/[^/]+\.tsv)(\.gz|\.zst|\.bz2)?")
_SPLIT = re.compile(r"qrels/([^/]+)\.tsv(\.\w+)?")
_IN_ALL = 4 * MOST


@contextmanager
def beir_in(path: Path) -> Iterator[Path | None]:
    """The BEIR folder in a ZIP file, unpacked temporarily; None if there is none.

    Judgments alone are not a folder: ``open_source_file`` reads a single file in a ZIP file. Errors
    about files in the folder name the ZIP file and the file.
    """
    name = str(path)
    if not _zipped(path):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="karat-") as place:
        folder = Path(place) / "beir"
        with unzipping(name), zipfile.ZipFile(path) as archive:
            parts = _parts(files_of(archive.infolist(), name), name)
            if all(part.startswith("qrels/") for part in parts):
                parts = {}
            _check(parts, path)
            for part, entry in parts.items():
                to = folder / part
                to.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as packed, to.open("wb") as out:
                    shutil.copyfileobj(packed, out, 1 << 20)
        try:
            yield folder if parts else None
        except InputError as error:
            if error.file is None or not error.file.startswith(str(folder)):
                raise
            inside = error.file[len(str(folder)) + 1 :]
            what = error.what.replace(f"{folder}/", "").replace(str(folder), name)
            fix = error.fix.replace(f"{folder}/", "") if error.fix else None
            what = f"{inside}: {what}" if inside else what
            raise but(error, what=what, file=name, fix=fix) from None


def _zipped(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(4) in ZIP
    except OSError:  # reported when it is read
        return False


def _parts(entries: Sequence[zipfile.ZipInfo], name: str) -> dict[str, zipfile.ZipInfo]:
    """The files of the topmost BEIR folder, by path within it."""
    candidates: list[tuple[str, str, zipfile.ZipInfo]] = []
    for entry in entries:
        steps = PurePosixPath(entry.filename.replace("\\", "/")).parts
        for length in (2, 1):
            part = "/".join(steps[-length:])
            if len(steps) >= length and _PART.fullmatch(part):
                candidates.append(("/".join(steps[:-length]), part, entry))
                break
    if not candidates:
        return {}
    root = min(
        (root for root, _, _ in candidates), key=lambda root: (root.count("/"), len(root), root)
    )
    parts: dict[str, zipfile.ZipInfo] = {}
    for under, part, entry in candidates:
        if under != root:
            continue
        if part in parts:
            raise InputError(f"the ZIP file contains {part} twice", file=name)
        parts[part] = entry
    splits: dict[str, str] = {}
    for part in parts:
        if (named := _SPLIT.fullmatch(part)) is not None:
            splits[named[1]] = part
    if splits:  # unpack only the split that is read
        split = one_split(splits, name, splits[min(splits)])
        parts = {
            part: parts[part] for part in parts if part == split or part not in splits.values()
        }
    return parts


def _check(parts: Mapping[str, zipfile.ZipInfo], path: Path) -> None:
    """Refuse files that expand more than real data does, each and in total."""
    name, total = str(path), sum(entry.file_size for entry in parts.values())
    for entry in parts.values():
        check_size(entry, name)
    if total > BOMB_FROM and total > BOMB_RATIO * path.stat().st_size:
        raise InputError(
            f"the ZIP file expands more than {BOMB_RATIO} times, to {total >> 20} MiB, which real "
            "data does not",
            file=name,
            fix="if you trust it, unpack it first",
        )
    if total > _IN_ALL:
        raise InputError(
            f"the ZIP file contains more than {_IN_ALL >> 30} GiB",
            file=name,
            fix="unpack it first",
        )
