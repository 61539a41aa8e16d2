"""Logs in S3 into the event store, and event stores that were copied to S3."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.buckets import Bucket, serving

from karat.errors import InputError, KaratError, UsageError
from karat.store.events.log import STAGING, read_event_log, read_manifest
from karat.workflows.online import _import_inputs
from karat.workflows.online.click_fit import fit_clicks
from karat.workflows.online.evaluate import evaluate_online, event_log
from karat.workflows.online.import_events import held, import_events

NOW = 4_000_000_000_000_000  # 2096: no event is later, and no object was written later
TEN = 1_795_168_800_000_000  # 2026-11-20T10:00:00Z


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with serving() as bucket:
        yield bucket


@pytest.fixture
def bucket(server: Bucket, request: pytest.FixtureRequest) -> Bucket:
    """Names of this test's own in the one bucket."""
    server.name = f"logs/{abs(hash(request.node.nodeid))}"
    return server


def rows(first: int, count: int) -> list[dict[str, object]]:
    """A search and a click each of some users."""
    made: list[dict[str, object]] = []
    for at in range(first, first + count):
        base = {"user_id": f"u{at}", "query_id": f"q{at}"}
        search = {"query": "shoes", "hits": ["d1", "d2"], "device": "phone"}
        made.append({**base, "time_us": TEN + at * 1000, "kind": "search", **search})
        click = {"doc_id": "d2", "position": 2}
        made.append({**base, "time_us": TEN + at * 1000 + 1, "kind": "click", **click})
    return made


def lines(events: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in events).encode()


def parquet(events: list[dict[str, object]]) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(events).write_parquet(stream)
    return stream.getvalue()


def test_every_format_is_imported_as_from_a_disk(bucket: Bucket, tmp_path: Path) -> None:
    logs = {
        "a.jsonl": lines(rows(0, 5)),
        "b.jsonl.gz": gzip.compress(lines(rows(5, 5))),
        "c/d.parquet": parquet(rows(10, 5)),
        "e.csv": b"user_id,time,action,query_id,doc_id\nv,2026-11-20T10:00:00Z,click,q1,d1\n",
        ".hidden": b"not a log",
        "_SUCCESS": b"",
    }
    for name, data in logs.items():
        bucket.put(name, data)
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).write_bytes(data)
    imported = import_events(tmp_path / "s3", [bucket.address("")], now=NOW)
    local = import_events(tmp_path / "local", [tmp_path / "logs"], now=NOW)
    assert imported.files == [
        bucket.address(name) for name in ("a.jsonl", "b.jsonl.gz", "c/d.parquet", "e.csv")
    ]
    assert (
        (imported.kept, imported.kinds)
        == (local.kept, local.kinds)
        == (
            31,
            {"click": 16, "search": 15},
        )
    )
    first, second = (read_manifest(tmp_path / name) for name in ("s3", "local"))
    assert first is not None
    assert second is not None
    assert [file.sha256 for file in first.files] == [file.sha256 for file in second.files]
    assert sorted(first.imports[0].files.values()) == sorted(second.imports[0].files.values())
    assert not (tmp_path / "s3" / STAGING).exists()


def test_each_event_once(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "events"
    bucket.put("1.jsonl", lines(rows(0, 5)))
    asked: list[str] = []
    fetch = _import_inputs.s3.fetched

    def counting(stored, *how):  # type: ignore[no-untyped-def]
        asked.append(stored.address)
        return fetch(stored, *how)

    monkeypatch.setattr(_import_inputs.s3, "fetched", counting)
    assert import_events(store, [bucket.address("*.jsonl")], now=NOW).kept == 10
    bucket.put("2.jsonl", lines(rows(4, 2)))  # a user again, and a new one
    bucket.put("3.jsonl", lines(rows(0, 5)))  # the first by another name
    again = import_events(store, [bucket.address("*.jsonl")], now=NOW)
    assert (again.kept, again.files) == (2, [bucket.address("2.jsonl")])
    assert list(again.skipped) == [bucket.address("1.jsonl"), bucket.address("3.jsonl")]
    # The first was not even fetched again: it was not written since it was imported.
    assert asked == [bucket.address(f"{number}.jsonl") for number in (1, 2, 3)]


def test_an_object_written_since_its_import_is_read_again(bucket: Bucket, tmp_path: Path) -> None:
    store = tmp_path / "events"
    long_ago = TEN + 10**9
    bucket.put("1.jsonl", lines(rows(0, 5)))
    assert import_events(store, [bucket.address("1.jsonl")], now=long_ago).kept == 10
    bucket.put("1.jsonl", lines(rows(0, 6)))
    assert import_events(store, [bucket.address("1.jsonl")], now=long_ago).kept == 2


def test_an_import_that_fails_changes_nothing(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "events"
    bucket.put("1.jsonl", lines(rows(0, 5)))
    bucket.put("2.jsonl", lines(rows(5, 5)))
    import_events(store, [bucket.address("1.jsonl")], now=NOW)
    before = {path.name: path.read_bytes() for path in store.iterdir() if path.is_file()}

    def broken(*_: object) -> str:
        raise InputError("the connection broke")

    monkeypatch.setattr(_import_inputs.s3, "fetched", broken)
    with pytest.raises(InputError, match="the connection broke"):
        import_events(store, [bucket.address("")], now=NOW)
    assert {path.name: path.read_bytes() for path in store.iterdir() if path.is_file()} == before
    monkeypatch.undo()
    assert import_events(store, [bucket.address("")], now=NOW).kept == 10


def test_problems_name_the_object(bucket: Bucket, tmp_path: Path) -> None:
    bad = bucket.put("bad.jsonl.gz", gzip.compress(lines(rows(0, 500)))[:-20])
    bucket.put("good.jsonl", lines(rows(0, 2)) + b"{\n")
    store = tmp_path / "events"
    imported = import_events(store, [bucket.address("")], now=NOW)
    assert imported.kept == 4
    texts = [text for places in imported.examples.values() for text in places]
    assert f"{bucket.address('good.jsonl')}, line 5" in texts
    assert any(text.startswith(f"{bad}: ") for text in texts)
    assert "object-" not in str(imported)


def test_shared_folders_by_address(tmp_path: Path) -> None:
    folder = tmp_path / "a share"
    folder.mkdir()
    (folder / "1.jsonl").write_bytes(lines(rows(0, 2)))
    address = folder.as_uri()
    assert "%20" in address
    assert import_events(tmp_path / "events", [address], now=NOW).kept == 4
    assert read_event_log((tmp_path / "events").as_uri()).rows == 4
    with pytest.raises(UsageError, match="gs:// is not supported"):
        import_events(tmp_path / "events", ["gs://bucket/logs"], now=NOW)


@pytest.fixture
def stores(bucket: Bucket, tmp_path: Path) -> tuple[Path, str]:
    """A store of two imports with different attributes, and its copy in S3."""
    store = tmp_path / "store"
    for number in (1, 2):
        log = tmp_path / f"{number}.jsonl"
        more = {"colour": "red"} if number == 2 else {}
        log.write_bytes(lines([row | more for row in rows(number * 50, 40)]))
        import_events(store, [log], now=NOW)
    return store, bucket.copy(store, "events")


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_store_in_s3_gives_the_same_numbers(stores: tuple[Path, str], engine: str) -> None:
    store, address = stores
    here, there = (
        evaluate_online(each, ["CTR"], by=["colour"], engine=engine) for each in (store, address)
    )
    assert [vars_of(each) for each in there.results] == [vars_of(each) for each in here.results]
    assert len(there.results) == 1 + 2  # overall, red, none
    assert read_event_log(address).version == read_event_log(store).version
    assert held(address).size == held(store).size > 0
    assert held(address).folder == address


def vars_of(result: object) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__dataclass_fields__}  # type: ignore[attr-defined]


def test_log_files_and_stores_are_told_by_their_names(bucket: Bucket) -> None:
    address = bucket.put("day.jsonl", lines(rows(0, 3)))
    with event_log(address) as (log, _notes):
        assert log.rows == 6
    with event_log(bucket.address("*.jsonl")) as (log, _notes):
        assert log.rows == 6
    with pytest.raises(InputError, match=f"no events in {bucket.address('nothing')}"):
        read_event_log(bucket.address("nothing"))


def test_an_incomplete_copy_is_refused(stores: tuple[Path, str], bucket: Bucket) -> None:
    store, address = stores
    (name,) = [path.name for path in store.glob("000001-*.parquet")]
    bucket.put(f"events/{name}", (store / name).read_bytes()[:-1])
    with pytest.raises(InputError, match="is damaged") as caught:
        read_event_log(address)
    assert caught.value.file == f"{address}/{name}"
    shutil.copy(store / name, store / "other.parquet")
    (store / name).unlink()
    partial = bucket.copy(store, "partial")
    with pytest.raises(InputError, match="is missing"):
        read_event_log(partial)


def test_an_object_that_goes_meanwhile(stores: tuple[Path, str], bucket: Bucket) -> None:
    from karat.engines.frames import s3

    _, address = stores
    log = read_event_log(address)
    s3.filesystem().delete_file(log.files[0].path.removeprefix("s3://"))
    for engine in ("polars", "duckdb"):
        with pytest.raises(KaratError, match="cannot be read") as caught:
            evaluate_online(log, ["CTR"], engine=engine)
        assert log.files[0].path in str(caught.value)


def test_events_are_not_imported_into_s3(bucket: Bucket) -> None:
    with pytest.raises(UsageError, match="has no locks"):
        import_events(bucket.address("events"), [bucket.address("")], now=NOW)


def test_click_models_read_it_too(stores: tuple[Path, str]) -> None:
    store, address = stores
    here, there = (fit_clicks(each, "DCTR").to_dict() for each in (store, address))
    assert there | {"seconds": 0} == here | {"seconds": 0}
