"""Files of a release, in ``releases/NAME/``: enough to roll it back without a database.

``switch.json`` is what moves its traffic, without values of secrets. ``rollback.json`` is its
tombstone: while that file exists, damaged or not, no process gives the candidate to users.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast, get_args

from karat.errors import InputError, UsageError, nearest
from karat.experiments.assignment import Rollout
from karat.formats.own.fields import Fields, Kind
from karat.formats.tables.writing import beside
from karat.tables.engines import Secret
from karat.tables.release.pipeline import SwitchConfig, SwitchKind

FOLDER = "releases"
SWITCH, TOMBSTONE, LOCK = "switch.json", "rollback.json", "switch.lock"
FINISHED = "finished.json"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KIND = Kind("switch", 1, "restore it from a backup; karat release run writes it again")


@dataclass(frozen=True)
class Tombstone:
    """A rollback that is never undone."""

    release: str
    at_us: int  # 0 if the file is damaged
    by: str
    reason: str


def checked_name(name: str) -> str:
    """The name of a release, which is also the name of a folder; UsageError if it cannot be one."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a name of a release",
            fix="up to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    return name


def release_folder(root: Path, name: str) -> Path:
    """The folder of a release, whether it exists or not."""
    return root / FOLDER / checked_name(name)


def existing_folder(root: Path, name: str) -> Path:
    """The folder of a release; UsageError with the nearest name if it does not exist."""
    folder = release_folder(root, name)
    try:
        if folder.is_dir():
            return folder
        names = [path.name for path in (root / FOLDER).glob("*") if path.is_dir()]
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise InputError(what, file=str(folder), fix="check who may read the folder") from None
    raise UsageError(
        f"no release {name!r} in {root / FOLDER}",
        nearest=nearest(name, names, 1),
        fix=f"one of {', '.join(sorted(names))}" if names else "karat release start",
    )


def tombstone(root: Path, name: str) -> Tombstone | None:
    """The tombstone of a release; None without one.

    One that is empty, damaged or cannot be read counts too, as does one that may exist.
    """
    path = release_folder(root, name) / TOMBSTONE
    try:
        path.lstat()
        content = json.loads(path.read_bytes())
        at_us, by, reason = (content[key] for key in ("at_us", "by", "reason"))
        if isinstance(at_us, int) and isinstance(by, str) and isinstance(reason, str):
            return Tombstone(name, at_us, by, reason)
        problem = "a field has the wrong type"
    except (FileNotFoundError, NotADirectoryError):
        if not path.is_symlink():
            return None
        problem = "it is a link to a missing file"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except (ValueError, LookupError, TypeError, RecursionError):
        problem = "the file is incomplete"
    return Tombstone(name, 0, "", f"{FOLDER}/{name}/{TOMBSTONE} is damaged: {problem}")


def write_tombstone(root: Path, record: Tombstone) -> Tombstone:
    """Write the tombstone of a release, which is on disk on return; the first one counts.

    Returns:
        The tombstone that counts.

    Raises:
        InputError: there may be none, or it may not survive a power cut.
    """
    folder = release_folder(root, record.release)
    path = folder / TOMBSTONE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            stream = path.open("xb")
        except FileExistsError:  # perhaps of a process that was killed before it was on disk
            with suppress(OSError), path.open("rb") as existing:
                os.fsync(existing.fileno())
        else:
            # The file itself counts: that must not depend on space for its content.
            with suppress(OSError), stream:
                stream.write(json.dumps(asdict(record), indent=1).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        _sync_folders(folder, root)
    except OSError as error:
        raise _unwritable(path, error) from None
    return tombstone(root, record.release) or record


def write_switch(root: Path, name: str, config: SwitchConfig, baseline: Rollout) -> None:
    """Write what it takes to roll a release back; it is on disk on return.

    Secrets are stored as the place where they are. ``baseline`` is the rollout that gives the
    candidate to no user.
    """
    switch = asdict(config) | {
        "url": _packed(config.url),
        "secret": None if config.secret is None else _packed(config.secret),
        "headers": {key: _packed(value) for key, value in config.headers.items()},
    }
    content = {_KIND.mark: _KIND.version, "switch": switch, "baseline": asdict(baseline)}
    folder = release_folder(root, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with beside(folder / SWITCH) as stream:
            stream.write(json.dumps(content, indent=1).encode() + b"\n")
        _sync_folders(folder, root)
    except OSError as error:
        raise _unwritable(folder / SWITCH, error) from None


def read_switch(root: Path, name: str) -> tuple[SwitchConfig, Rollout]:
    """The switch of a release and its rollout without the candidate.

    Raises:
        InputError: the file is missing or damaged.
    """
    path = release_folder(root, name) / SWITCH
    where = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise InputError(what, file=where, fix=_KIND.remade) from None
    head = Fields(_KIND.content(data, where), ("switch", "baseline"), where, _KIND.remade)
    names = [field.name for field in fields(SwitchConfig)]
    switch = Fields(head.value["switch"], names, where, _KIND.remade, "switch")
    if switch.value["kind"] not in get_args(SwitchKind):
        raise switch.wrong("kind", f"one of {', '.join(get_args(SwitchKind))}")
    command = switch.get("command", list, "a list of texts")
    if not all(isinstance(part, str) for part in command):
        raise switch.wrong("command", "a list of texts")
    headers: Mapping[str, Any] = switch.get("headers", dict, "headers")
    config = SwitchConfig(
        kind=cast(SwitchKind, switch.value["kind"]),
        url=_unpacked(switch, "url", switch.value["url"]),
        secret=None
        if switch.value["secret"] is None
        else cast(Secret, _unpacked(switch, "secret", switch.get("secret", dict, "a secret"))),
        headers={key: _unpacked(switch, "headers", value) for key, value in headers.items()},
        command=tuple(command),
        **switch.plain(SwitchConfig, "url"),
    )
    names = [field.name for field in fields(Rollout)]
    baseline = Fields(head.value["baseline"], names, where, _KIND.remade, "baseline")
    try:
        return config, Rollout(**baseline.plain(Rollout))
    except UsageError as error:
        raise InputError(error.what, file=where, fix=_KIND.remade) from None


def _packed(value: str | Secret) -> Any:
    if isinstance(value, str):
        return value
    return {"env": value.env} if value.env else {"file": value.file}


def _unpacked(switch: Fields, key: str, value: Any) -> str | Secret:
    if isinstance(value, dict) and len(value) == 1:
        (source, name), *_ = value.items()
        if source in {"env", "file"} and isinstance(name, str):
            return Secret(**{source: name})
    if not isinstance(value, str):
        raise switch.wrong(key, "text or the place of a secret")
    return value


def _sync_folders(folder: Path, root: Path) -> None:
    """Wait until the names in a folder and its parents are on disk."""
    if sys.platform == "win32":  # where folders cannot be opened
        return
    for path in (folder, folder.parent, root):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot be written: {error.strerror}",
        file=str(path),
        fix="check that the folder is writable and its disk has space",
    )


def restore_switch(root: Path, name: str, config: SwitchConfig, rollout: Rollout) -> None:
    """Write what a rollback needs, if the folder of the release was damaged."""
    if not (release_folder(root, name) / SWITCH).exists():
        write_switch(root, name, config, rollout)


def mark_finished(root: Path, name: str) -> None:
    """Note that a release is over: another may have its switch."""
    path = release_folder(root, name) / FINISHED
    if not path.exists():
        with beside(path) as stream:
            stream.write(b"{}\n")
