"""Bundles: one archive of many files (zip or tar) with a list of their SHA-256, checked whole."""

from __future__ import annotations

import hashlib
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

HEAD = "karat-backup.json"
"""The file with the list, the last of a bundle."""
ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
_VERSION = 1
_CHUNK = 1 << 20
_LARGEST_HEAD = 1 << 26
_BOMB_FROM, _BOMB_RATIO = 1 << 28, 250  # as for any compressed file: see formats.source
_LONGEST = 240  # bytes of a name between two slashes, with room for what is put before it
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
    """A bundle that is being written.

    Attributes:
        archive: The archive.
        files: What is in it: name, bytes and SHA-256.
    """

    archive: zipfile.ZipFile | tarfile.TarFile
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, path: Path) -> None:
        """Put a file into it.

        Args:
            name: Its name there, with slashes.
            path: The file, whole.

        Raises:
            InputError: it cannot be read, or there is no such name.
        """
        try:
            stream = path.open("rb")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
        with stream:
            self.put(name, stream)

    def put(self, name: str, stream: IO[bytes]) -> None:
        """Put what a file holds from its start into it.

        Args:
            name: Its name there, with slashes.
            stream: The file, open.

        Raises:
            InputError: it became shorter, or there is no such name.
        """
        if not is_safe(name) or name in self.files:
            raise InputError("no backup can hold a file of this name", file=name)
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
            raise InputError("it became shorter while it was read", file=name)
        self.files[name] = {"bytes": size, "sha256": counted.digest.hexdigest()}


class _Counted:
    """A stream up to a size, and the digest of what was read."""

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
    """A bundle that takes its place when the block ends; readable by its owner alone.

    Args:
        path: Its file, which must not be there; its name says whether it is a zip or a tar.
        about: What its list says besides the files; what JSON can hold.

    Raises:
        UsageError: it is there, or its name says neither.
        InputError: it cannot be written.
    """
    ending = next((each for each in ENDINGS if path.name.lower().endswith(each)), None)
    if ending is None:
        fix = f"end its name in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        raise UsageError(f"the name {path.name} does not say what kind of archive it is", fix=fix)
    if path.exists():
        raise UsageError(f"{path} is there already", fix="choose another name, as with the date")
    with beside(path, secret=True) as stream:
        if os.name == "posix":
            os.fchmod(stream.fileno(), 0o600)
        with _archive(stream, ending) as archive:
            made = Writing(archive)
            yield made
            _end(made, about)


def _archive(stream: IO[bytes], ending: str) -> zipfile.ZipFile | tarfile.TarFile:
    if ending == ".zip":
        return zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)
    if ending == ".tgz":
        return tarfile.open(fileobj=stream, mode="w|gz")
    return tarfile.open(fileobj=stream, mode="w|")  # its .gz is written by ``beside``


def _end(made: Writing, about: Mapping[str, Any]) -> None:
    listed = {**about, "files": made.files}
    whole = {"karat_backup": _VERSION, "sha256": _digest(listed), "about": listed}
    data = json.dumps(whole, indent=1).encode()
    if isinstance(made.archive, zipfile.ZipFile):
        made.archive.writestr(HEAD, data)
    else:
        import io

        head = tarfile.TarInfo(HEAD)
        head.size, head.mode = len(data), 0o600
        made.archive.addfile(head, io.BytesIO(data))


def checked(path: Path) -> dict[str, Any]:
    """What the list of a bundle says; every byte was read, and is as it was written.

    Raises:
        InputError: it is no bundle, is damaged, was made by a newer karat, holds what no bundle
            holds (a name that leads out of its folder, a link), or expands beyond what real data
            does.
    """
    found: dict[str, dict[str, Any]] = {}
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
            found[name] = {"bytes": size, "sha256": digest.hexdigest()}
    if not head:
        raise InputError(
            "this is no backup of karat's, or its end is lost", file=str(path), fix=_ANOTHER
        )
    try:
        whole = json.loads(head)
        about: dict[str, Any] = whole["about"]
        version, same = whole["karat_backup"], whole["sha256"] == _digest(about)
        listed = dict(about["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path, "its list of files cannot be read") from None
    if not same:
        raise _damaged(path, "its list of files is not what was written")
    if version != _VERSION:
        fix = "pip install --upgrade karat"
        raise InputError("it was made by a newer karat than this one", file=str(path), fix=fix)
    for name in sorted(listed.keys() | found.keys()):
        if listed.get(name) != found.get(name):
            kind = "is lacking" if name not in found else "is not what was written"
            raise _damaged(path, f"{name} {kind}")
    return about


def entries(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each file but the list; read each before the next.

    Raises:
        InputError: as ``checked``, as far as the archive itself shows it.
    """
    with _reading(path) as found:
        for name, stream in found:
            if name != HEAD:
                yield name, stream


def is_safe(name: str) -> bool:
    """Whether a name leads to a place below the folder it is put in, on any system."""
    parts = name.split("/")
    return name.isprintable() and all(
        part not in {"", ".", ".."}
        and not set(part) & set('\\:*?"<>|')
        and len(part.encode()) <= _LONGEST
        for part in parts
    )


_ANOTHER = "take another copy of it"


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
        # What the libraries say of it is for those who write archives.
        raise InputError(
            "this is no backup of karat's, or damaged", file=str(path), fix=_ANOTHER
        ) from error


_Found = Iterator[tuple[str, int, IO[bytes] | None]]


@contextmanager
def _zipped(path: Path) -> Iterator[_Found]:
    with zipfile.ZipFile(path) as archive:

        def found() -> _Found:
            for each in archive.infolist():
                plain = (each.external_attr >> 28) in {0, 8} and not each.is_dir()  # no link
                with archive.open(each) as stream:
                    yield each.filename, each.file_size, stream if plain else None

        yield found()


@contextmanager
def _tarred(path: Path) -> Iterator[_Found]:
    with tarfile.open(path, "r:*") as archive:

        def found() -> _Found:
            for each in archive:
                yield each.name, each.size, archive.extractfile(each) if each.isreg() else None

        yield found()


def _bounded(path: Path, size: int, found: _Found) -> Iterator[tuple[str, IO[bytes]]]:
    seen: set[str] = set()
    total = 0
    for name, expanded, stream in found:
        if stream is None or not is_safe(name) or name in seen:
            shown = "".join(c if c.isprintable() else "?" for c in name[:200])
            raise InputError(
                f"it holds what no backup of karat's does: {shown!r}",
                file=str(path),
                fix="do not trust it",
            )
        seen.add(name)
        total += expanded
        if total > _BOMB_FROM and total > _BOMB_RATIO * size:
            raise InputError(
                f"it expands more than {_BOMB_RATIO} times, which real data does not",
                file=str(path),
                fix="do not trust it",
            )
        yield name, stream
