"""The files of a release."""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from karat.errors import InputError, UsageError
from karat.experiments.assignment import Rollout
from karat.formats.own.release_files import (
    SWITCH,
    TOMBSTONE,
    Tombstone,
    checked_name,
    existing_folder,
    read_switch,
    release_folder,
    tombstone,
    write_switch,
    write_tombstone,
)
from karat.tables.engines import Secret
from karat.tables.release.pipeline import SwitchConfig

RECORD = Tombstone("v2", 1_800_000_000_000_000, "anna", "clicks “fell”")
BASELINE = Rollout("new-ranker", "s", "a", "b")
CONFIGS = [
    SwitchConfig("file", path="rollout.json"),
    SwitchConfig("webhook", url=Secret(env="HOOK"), secret=Secret(file="secret"), timeout=2.5),
    SwitchConfig("command", command=("./switch", "--now")),
    SwitchConfig(
        "alias", url="http://search:9200", alias="shop", baseline_index="v1", candidate_index="v2",
        headers={"authorization": Secret(env="TOKEN"), "x-team": "search"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("name", ["a", "new-ranker_2.1", "0", "A" * 64])
def test_names(name: str, tmp_path: Path) -> None:
    assert checked_name(name) == name
    assert release_folder(tmp_path, name) == tmp_path / "releases" / name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".a", "-a", "a/b", "../a", "a\\b", "a\n", "a b", "ä", "A" * 65, "a\0"]
)
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    for call in (
        lambda: checked_name(name),
        lambda: tombstone(tmp_path, name),
        lambda: read_switch(tmp_path, name),
        lambda: write_tombstone(tmp_path, replace(RECORD, release=name)),
        lambda: write_switch(tmp_path, name, CONFIGS[0], BASELINE),
    ):
        with pytest.raises(UsageError, match="is not a name of a release\n  fix: up to 64"):
            call()
    assert not list(tmp_path.iterdir())


def test_an_unknown_release(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no release 'v2'"):
        existing_folder(tmp_path, "v2")
    (tmp_path / "releases/ranker").mkdir(parents=True)
    with pytest.raises(UsageError, match="did you mean ranker"):
        existing_folder(tmp_path, "rankr")
    assert existing_folder(tmp_path, "ranker").is_dir()


def test_the_first_tombstone_counts(tmp_path: Path) -> None:
    assert tombstone(tmp_path, "v2") is None
    assert write_tombstone(tmp_path, RECORD) == RECORD
    data = (tmp_path / "releases/v2" / TOMBSTONE).read_bytes()
    assert write_tombstone(tmp_path, replace(RECORD, by="ben", at_us=1)) == RECORD
    assert tombstone(tmp_path, "v2") == RECORD
    assert (tmp_path / "releases/v2" / TOMBSTONE).read_bytes() == data
    assert tombstone(tmp_path, "v3") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b"\xff", b'{"by": "anna"}', b"[" * 100_000,
     b'{"at_us": "1", "by": "", "reason": ""}'],
)  # fmt: skip
def test_a_damaged_tombstone_counts(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "releases/v2" / TOMBSTONE
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    found = tombstone(tmp_path, "v2")
    assert found is not None
    assert (found.at_us, found.by) == (0, "")
    assert "releases/v2/rollback.json is damaged" in found.reason
    assert write_tombstone(tmp_path, RECORD) == found


def test_whatever_has_its_name_counts(tmp_path: Path) -> None:
    folder = tmp_path / "releases/v2"
    (folder / TOMBSTONE).mkdir(parents=True)
    assert tombstone(tmp_path, "v2") is not None
    assert write_tombstone(tmp_path, RECORD).at_us == 0
    (folder / TOMBSTONE).rmdir()
    (folder / TOMBSTONE).symlink_to("nowhere")
    assert tombstone(tmp_path, "v2") is not None
    assert write_tombstone(tmp_path, RECORD).at_us == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read it")
def test_a_tombstone_that_may_not_be_read_counts(tmp_path: Path) -> None:
    write_tombstone(tmp_path, RECORD)
    path = tmp_path / "releases/v2"
    (path / TOMBSTONE).chmod(0)
    assert tombstone(tmp_path, "v2") is not None
    path.chmod(0)
    try:
        assert tombstone(tmp_path, "v2") is not None
    finally:
        path.chmod(0o700)


def test_a_tombstone_is_on_disk_with_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, int]] = []

    def note(handle: int) -> None:
        state = os.fstat(handle)
        synced.append((stat.S_ISDIR(state.st_mode), state.st_ino))

    monkeypatch.setattr(os, "fsync", note)
    folder = tmp_path / "releases/v2"
    for _ in range(2):  # the first process may have been killed before it was on disk
        synced.clear()
        write_tombstone(tmp_path, RECORD)
        paths = (folder / TOMBSTONE, folder, folder.parent, tmp_path)
        assert synced == [(path.is_dir(), path.stat().st_ino) for path in paths]


def test_a_full_disk_does_not_prevent_a_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is there, and its content is not."""

    def full(handle: int) -> None:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            os.ftruncate(handle, 0)
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert write_tombstone(tmp_path, RECORD).at_us == 0
    assert tombstone(tmp_path, "v2") is not None


def test_a_tombstone_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "releases").write_text("a file")
    with pytest.raises(InputError, match=r"rollback\.json: cannot be written: .*\n  fix: check"):
        write_tombstone(tmp_path, RECORD)
    (tmp_path / "releases").unlink()

    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(InputError, match="Input/output error"):
        write_tombstone(tmp_path, RECORD)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_a_switch_is_read_as_it_was_written(config: SwitchConfig, tmp_path: Path) -> None:
    write_switch(tmp_path, "v2", config, BASELINE)
    assert read_switch(tmp_path, "v2") == (config, BASELINE)
    write_switch(tmp_path, "v2", config, BASELINE)
    assert [path.name for path in (tmp_path / "releases/v2").iterdir()] == [SWITCH]


def test_a_switch_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "releases").write_text("a file")
    with pytest.raises(InputError, match=r"switch\.json: cannot be written"):
        write_switch(tmp_path, "v2", CONFIGS[0], BASELINE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "magic"}, 'kind is "magic", not one of file, webhook'),
        ({"path": 1}, "path is 1, not text"),
        ({"timeout": "x"}, "not a finite number"),
        ({"command": "rm"}, "not a list of texts"),
        ({"command": [1]}, "not a list of texts"),
        ({"secret": "hush"}, "not a secret"),
        ({"secret": {"env": 1}}, "not text or the place of a secret"),
        ({"headers": {"x": 1}}, "not text or the place of a secret"),
        ({"more": 1}, "unknown field"),
    ],
)
def test_a_damaged_switch_is_named(change: dict[str, object], says: str, tmp_path: Path) -> None:
    write_switch(tmp_path, "v2", CONFIGS[0], BASELINE)
    path = tmp_path / "releases/v2" / SWITCH
    content = json.loads(path.read_text())
    content["switch"] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"switch\.json: switch: ") as damaged:
        read_switch(tmp_path, "v2")
    assert says in str(damaged.value)
    assert "fix: restore it from a backup" in str(damaged.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"karat_switch": 2}', b"\xff"])
def test_a_file_that_is_not_a_switch(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "releases/v2" / SWITCH
    with pytest.raises(InputError, match=r"switch\.json: cannot be read: No such file"):
        read_switch(tmp_path, "v2")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"switch\.json"):
        read_switch(tmp_path, "v2")
    path.write_text('{"karat_switch": 1, "switch": {}, "baseline": {}}')
    with pytest.raises(InputError, match="missing field 'kind'"):
        read_switch(tmp_path, "v2")


def test_a_baseline_that_is_impossible(tmp_path: Path) -> None:
    write_switch(tmp_path, "v2", CONFIGS[0], BASELINE)
    path = tmp_path / "releases/v2" / SWITCH
    content = json.loads(path.read_text())
    content["baseline"]["treatment_share"] = 7
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="are not shares of all units"):
        read_switch(tmp_path, "v2")
