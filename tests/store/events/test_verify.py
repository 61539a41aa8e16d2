"""A manifest that is damaged, or that somebody else wrote, ends in one sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.event_stores import keep_events

from karat.errors import InputError
from karat.store.events.log import MANIFEST, read_event_log, read_manifest

Spoil = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "s"
    rows = {"user_id": ["u", "v"], "time_us": [1_795_168_800_000_000] * 2, "kind": ["search"] * 2}
    keep_events(folder, pl.DataFrame(rows))
    return folder


def _of_all(**values: object) -> Spoil:
    return lambda held: held.update(values)


def _of_file(**values: object) -> Spoil:
    return lambda held: held["files"][0].update(values)


def _of_import(**values: object) -> Spoil:
    return lambda held: held["imports"][0].update(values)


@pytest.mark.parametrize(
    "spoil",
    [
        _of_all(timezone="Mars/X"),
        _of_all(timezone="localtime"),
        _of_all(timezone=5),
        _of_all(kinds=[1]),
        _of_all(kinds={"search": "x"}),
        _of_all(kinds={"searched": 1}),
        _of_all(first_day="x"),
        _of_all(last_day=10**12),
        _of_all(last_us=None),
        _of_all(last_us=10**400),
        _of_all(first_us=1.5),
        _of_all(first_us=2 * 10**15, last_us=10**15),
        _of_all(strange=1),
        _of_all(known=None),
        _of_all(arms=5),
        _of_all(attributes=[1]),
        _of_all(bots=True),
        _of_all(simulated="no"),
        _of_all(files=None),
        _of_all(imports=[{}]),
        _of_all(imports=5),
        _of_import(files=["x"]),
        _of_import(rows=-1),
        _of_import(settings={"users": []}),
        _of_import(settings={"users": ["import"]}),
        _of_import(time_us=2**63),
        lambda held: held["files"].append(held["files"][0]),
        _of_file(name="../secret.parquet"),
        _of_file(name="/etc/secret.parquet"),
        _of_file(name="a/b.parquet"),
        _of_file(name="..\\secret.parquet"),
        _of_file(name="."),
        _of_file(name="a\0b.parquet"),
        _of_file(name=".hidden.parquet"),
        _of_file(name="notes.txt"),
        _of_file(rows=-5),
        _of_file(rows="x"),
        _of_file(low=200, high=10),
        _of_file(high=257),
        _of_file(bytes="x"),
        _of_file(sha256=None),
    ],
)
def test_a_manifest_that_cannot_be(spoil: Spoil, store: Path, tmp_path: Path) -> None:
    held = json.loads((store / MANIFEST).read_text())
    spoil(held)
    (tmp_path / MANIFEST).write_text(json.dumps(held))
    with pytest.raises(InputError, match="the manifest of the event store is damaged"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("body", ["", "[]", "null", "[" * 100_000, '{"karat_events": 1}'])
def test_a_manifest_that_is_none(body: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(body)
    with pytest.raises(InputError, match="the manifest of the event store is damaged"):
        read_manifest(tmp_path)


def test_a_manifest_of_an_earlier_karat_says_no_sizes(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    shutil.copytree(store, folder)
    held = json.loads((folder / MANIFEST).read_text())
    assert held["files"][0]["bytes"] == (folder / held["files"][0]["name"]).stat().st_size
    del held["files"][0]["bytes"]
    (folder / MANIFEST).write_text(json.dumps(held))
    assert read_event_log(folder).rows == 2


@pytest.mark.parametrize("size_known", [True, False])
@pytest.mark.parametrize("keep", [0.0, 0.5])
def test_a_file_that_was_cut_is_seen_when_the_log_is_opened(
    keep: float, size_known: bool, store: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    shutil.copytree(store, folder)
    held = json.loads((folder / MANIFEST).read_text())
    if not size_known:
        del held["files"][0]["bytes"]
        (folder / MANIFEST).write_text(json.dumps(held))
    path = folder / held["files"][0]["name"]
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(InputError, match="a file of the event store is damaged") as caught:
        read_event_log(folder)
    assert caught.value.file == str(path)
    path.unlink()
    with pytest.raises(InputError, match="a file of the event store is missing"):
        read_event_log(folder)
