"""Backups: zip or tar archives with a list of the SHA-256 of their files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from karat.errors import InputError, UsageError
from karat.formats.tables.writing import beside

HEAD = "karat-backup.json"  # the file with the list, the last in the archive
ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
_VERSION = 1
_CHUNK = 1 << 20
_LARGEST_HEAD = 1 << 26
_BOMB_FROM, _BOMB_RATIO = 1 << 28, 250  # as tables.source.BOMB_RATIO
_LONGEST = 240  # bytes of a name between slashes, with room for a prefix
_BROKEN = (
    EOFError,
    OSError,
    RuntimeError,  # a zip with a password
    NotImplementedError,
    ValueError,
    OverflowError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass
class Writing:
    """An archive that is being written; ``files`` maps names to bytes and SHA-256."""

    archive: zipfile.ZipFile | tarfile.TarFile
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, path: Path) -> None:
        try:
            stream = path.open("rb")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
        with stream:
            self.put(name, stream)

    def put(self, name: str, stream: IO[bytes]) -> None:
        """Add an open file; ``name`` is its name in the archive, with slashes."""
        if not is_safe(name) or name in self.files:
            raise InputError("a backup cannot contain a file of this name", file=name)
        size = os.fstat(stream.fileno()).st_size
        counted = _Counted(stream, size)
        if isinstance(self.archive, zipfile.ZipFile):
            with self.archive.open(name, "w", force_zip64=True) as target:
                while data := counted.read(_CHUNK):
                    target.write(data)
        else:
            head = tarfile.TarInfo(name)
            head.size, head.mode = size, 0o600
            self.archive.addfile(head, cast(IO[bytes], counted))
        if counted.left:
            raise InputError("the file was truncated while it was being read", file=name)
        self.files[name] = {"bytes": size, "sha256": counted.digest.hexdigest()}


class _Counted:
    """A stream limited to a size, with a digest of what was read."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self.left = stream, size
        self.digest = hashlib.sha256()

    def read(self, size: int = _CHUNK) -> bytes:
        data = self._stream.read(min(size, self.left))
        self.left -= len(data)
        self.digest.update(data)
        return data


@contextmanager
def writing(path: Path, about: Mapping[str, Any]) -> Iterator[Writing]:
    """Write an archive, which appears when the block ends; readable by its owner only."""
    ending = next((each for each in ENDINGS if path.name.lower().endswith(each)), None)
    if ending is None:
        fix = f"use the extension {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        raise UsageError(f"cannot tell the archive format from the name {path.name}", fix=fix)
    if path.exists():
        raise UsageError(f"{path} already exists", fix="choose another name, such as with the date")
    with beside(path, secret=True) as stream:
        if os.name == "posix":
            os.fchmod(stream.fileno(), 0o600)
        with _archive(stream, ending) as archive:
            bundle = Writing(archive)
            yield bundle
            _end(bundle, about)


def _archive(stream: IO[bytes], ending: str) -> zipfile.ZipFile | tarfile.TarFile:
    if ending == ".zip":
        return zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)
    if ending == ".tgz":
        return tarfile.open(fileobj=stream, mode="w|gz")
    return tarfile.open(fileobj=stream, mode="w|")  # ``beside`` compresses it


def _end(bundle: Writing, about: Mapping[str, Any]) -> None:
    listed = {**about, "files": bundle.files}
    content = {"karat_backup": _VERSION, "sha256": _digest(listed), "about": listed}
    data = json.dumps(content, indent=1).encode()
    if isinstance(bundle.archive, zipfile.ZipFile):
        bundle.archive.writestr(HEAD, data)
    else:
        head = tarfile.TarInfo(HEAD)
        head.size, head.mode = len(data), 0o600
        bundle.archive.addfile(head, io.BytesIO(data))


def checked(path: Path) -> dict[str, Any]:
    """The list of an archive, after checking the SHA-256 of every file."""
    actual: dict[str, dict[str, Any]] = {}
    head = b""
    with _reading(path) as entries:
        for name, stream in entries:
            if name == HEAD:
                head = stream.read(_LARGEST_HEAD)
                continue
            digest, size = hashlib.sha256(), 0
            while data := stream.read(_CHUNK):
                digest.update(data)
                size += len(data)
            actual[name] = {"bytes": size, "sha256": digest.hexdigest()}
    if not head:
        raise InputError("not a karat backup, or truncated", file=str(path), fix=_ANOTHER)
    try:
        content = json.loads(head)
        about: dict[str, Any] = content["about"]
        version, same = content["karat_backup"], content["sha256"] == _digest(about)
        listed = dict(about["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path, "its list of files cannot be read") from None
    if not same:
        raise _damaged(path, "its list of files was changed")
    if version != _VERSION:
        fix = "pip install --upgrade karat"
        raise InputError("the backup was written by a newer karat", file=str(path), fix=fix)
    for name in sorted(listed.keys() | actual.keys()):
        if listed.get(name) != actual.get(name):
            kind = "is missing" if name not in actual else "was changed"
            raise _damaged(path, f"{name} {kind}")
    return about


def entries(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each file except the list; read each before the next."""
    with _reading(path) as found:
        for name, stream in found:
            if name != HEAD:
                yield name, stream


def is_safe(name: str) -> bool:
    """Whether a name stays within the folder it is unpacked in, on any system."""
    parts = name.split("/")
    return name.isprintable() and all(
        part not in {"", ".", ".."}
        and not set(part) & set('\\:*?"<>|')
        and len(part.encode()) <= _LONGEST
        for part in parts
    )


_ANOTHER = "use another copy"


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"the backup is damaged: {what}", file=str(path), fix=_ANOTHER)


def _digest(about: Mapping[str, Any]) -> str:
    text = json.dumps(about, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _reading(path: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    try:
        size = path.stat().st_size
        is_zip = zipfile.is_zipfile(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    try:
        with _zipped(path) if is_zip else _tarred(path) as found:
            yield _bounded(path, size, found)
    except InputError:
        raise
    except _BROKEN as error:
        # The libraries' messages are too technical to show.
        raise InputError("not a karat backup, or damaged", file=str(path), fix=_ANOTHER) from error


_Found = Iterator[tuple[str, int, IO[bytes] | None]]


@contextmanager
def _zipped(path: Path) -> Iterator[_Found]:
    with zipfile.ZipFile(path) as archive:

        def found() -> _Found:
            for entry in archive.infolist():
                plain = (entry.external_attr >> 28) in {0, 8} and not entry.is_dir()  # not a link
                with archive.open(entry) as stream:
                    yield entry.filename, entry.file_size, stream if plain else None

        yield found()


@contextmanager
def _tarred(path: Path) -> Iterator[_Found]:
    with tarfile.open(path, "r:*") as archive:

        def found() -> _Found:
            for entry in archive:
                stream = archive.extractfile(entry) if entry.isreg() else None
                yield entry.name, entry.size, stream

        yield found()


def _bounded(path: Path, size: int, found: _Found) -> Iterator[tuple[str, IO[bytes]]]:
    seen: set[str] = set()
    total = 0
    for name, expanded, stream in found:
        if stream is None or not is_safe(name) or name in seen:
            shown = "".join(c if c.isprintable() else "?" for c in name[:200])
            raise InputError(
                f"not a karat backup: unexpected entry {shown!r}",
                file=str(path),
                fix="do not trust it",
            )
        seen.add(name)
        total += expanded
        if total > _BOMB_FROM and total > _BOMB_RATIO * size:
            raise InputError(
                f"the backup expands more than {_BOMB_RATIO} times, which real data does not",
                file=str(path),
                fix="do not trust it",
            )
        yield name, stream
