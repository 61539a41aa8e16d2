"""Spark imports as karat does by itself: the same events, counts and notes."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pytest
from tests.contracts.conftest import ON_SPARK

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError
from karat.store.events import files
from karat.store.events.log import MANIFEST, read_event_log
from karat.workflows.online import _import_steps as steps
from karat.workflows.online import import_events as module
from karat.workflows.online._import_inputs import fingerprint
from karat.workflows.online.evaluate import evaluate_online
from karat.workflows.online.import_events import import_events

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
TEN = 1_795_168_800_000_000  # 2026-11-20T10:00:00Z
T = TypeVar("T")
R = TypeVar("R")


class Copies:
    """Runs each step on a copy of it, as another process would, and in any order."""

    def spread(self, step: Callable[[T], R], items: Sequence[T]) -> list[R]:
        copied = pickle.dumps(step)
        done = [pickle.dumps(pickle.loads(copied)(each)) for each in reversed(items)]
        return [pickle.loads(each) for each in reversed(done)]


@pytest.fixture(params=["copies", ON_SPARK])
def apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``engine="spark"`` runs on; ranges are small, so that there are several."""
    monkeypatch.setattr(files, "FILE", 100)
    if request.param == "spark":
        request.getfixturevalue("spark")
        return

    @contextmanager
    def opened(_master: str | None) -> Iterator[Copies]:
        yield Copies()

    monkeypatch.setattr(module, "open_spark", opened)


def rows_of(users: int, seed: int) -> list[dict[str, object]]:
    """Searches and events of some users; some have empty hits, some events come twice."""
    draw = random.Random(seed)
    rows: list[dict[str, object]] = []
    for user in range(users):
        for at in range(draw.randrange(1, 5)):
            stamp, query = TEN + draw.randrange(40_000) * 1_000_000, f"q{user}-{at}"
            base = {"client_id": f"u{user}", "query_id": query}
            hits = draw.choice([["d1", "d2"], []])
            rows.append({**base, "timestamp": stamp, "user_query": f"shoes {at}", "hits": hits})
            for place in range(draw.randrange(3)):
                action = draw.choice(["click", "purchase", "hover"])
                more = {"action_name": action, "timestamp": stamp + (place - 1) * 3_000_000}
                rows.append({**base, **more, "doc_id": f"d{place}", "position": place})
    draw.shuffle(rows)
    return rows + rows[:20]


def logs(folder: Path) -> Path:
    """Lines of JSON with damaged ones, CSV, Parquet, a damaged archive, and one without events."""
    folder.mkdir()

    def lines(part: Sequence[object]) -> str:
        return "".join(json.dumps(each) + "\n" for each in part)

    (folder / "a.ndjson").write_text(lines(rows_of(60, 1)) + '{"action_name": "cl\nno\n')
    pl.DataFrame(rows_of(40, 2), infer_schema_length=None).with_columns(
        pl.col("hits").list.join("|"), shop=pl.lit("berlin")
    ).write_csv(folder / "b.csv")
    pl.DataFrame(rows_of(40, 3), infer_schema_length=None).write_parquet(folder / "c.parquet")
    packed = gzip.compress(lines(rows_of(40, 4)).encode())
    (folder / "d.ndjson.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "e.ndjson").write_text('{"temperature": 3}\n' * 5)
    (folder / "f.ndjson").write_text(lines(rows_of(60, 1)[10:90]))
    return folder


def content(folder: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """All events, and the manifest but for names, hashes and sizes of files."""
    log = read_event_log(folder)
    events = pl.concat([pl.read_parquet(each.path) for each in log.files], how="diagonal")
    manifest = json.loads((folder / MANIFEST).read_bytes())
    for file in manifest["files"]:
        assert file["name"] in {Path(each.path).name for each in log.files}
        del file["name"], file["sha256"], file["bytes"]
    return events.select(sorted(events.columns)).sort(*files.ORDER), manifest


def test_spark_imports_what_karat_does_by_itself(apart: None, tmp_path: Path) -> None:
    everything = logs(tmp_path / "logs")
    mapping = tmp_path / "m.toml"
    mapping.write_text('[kinds]\nhover = "impression"\n[hits]\nempty = 0\n')
    found: dict[str, list[object]] = {}
    for engine in ("polars", "spark"):
        store, told = tmp_path / engine, []
        told.append(import_events(store, [everything / "c.parquet"], now=NOW, engine=engine))  # type: ignore[arg-type]
        for more in ({}, {"partial": True}, {"mapping": mapping}):
            told.append(import_events(store, [everything], now=NOW, engine=engine, **more))  # type: ignore[arg-type]
        found[engine] = [dataclasses.asdict(each) for each in told]
    assert found["spark"] == found["polars"]
    assert len(read_event_log(tmp_path / "spark").files) > 10
    events, manifest = content(tmp_path / "spark")
    wanted, listed = content(tmp_path / "polars")
    assert events.equals(wanted)
    assert manifest == listed
    numbers = [
        [
            (each.metric, each.n, each.users, each.total)
            for each in evaluate_online(tmp_path / engine, ["CTR", "ZeroResults"]).results
        ]
        for engine in found
    ]
    assert numbers[0] == numbers[1]


def test_what_is_refused(apart: None, tmp_path: Path) -> None:
    for at in range(2):
        names = {f"extra{at * 20 + each}": "x" for each in range(20)}
        row = {**rows_of(1, at)[0], **names}
        (tmp_path / f"{at}.ndjson").write_text(json.dumps(row) + "\n")
    both = [tmp_path / "0.ndjson", tmp_path / "1.ndjson"]
    with pytest.raises(UsageError, match=r"40 attributes, more than 32\n.*\[attributes\]"):
        import_events(tmp_path / "s", both, now=NOW, engine="spark")
    with pytest.raises(InputError, match=r"2.ndjson: there is no such file"):
        import_events(tmp_path / "s", [*both, tmp_path / "2.ndjson"], now=NOW, engine="spark")
    with pytest.raises(UsageError, match="a check runs on this machine"):
        import_events(tmp_path / "s", both, now=NOW, engine="spark", check=True)
    assert not list((tmp_path / "s").glob("*.parquet"))
    assert not (tmp_path / "s" / MANIFEST).exists()


def test_machines_that_differ_are_refused(tmp_path: Path) -> None:
    """As an executor sees it that has other folders, or another Polars."""
    path = tmp_path / "0.ndjson"
    path.write_text(json.dumps(rows_of(1, 1)[0]))
    step = steps.Step(module.Reading(NOW), ("user_id",), partial=False)
    here = steps.StepApart(step, tmp_path / "nowhere", files.hashing())
    with pytest.raises(InputError, match=r"nowhere: an executor of Spark does not see it"):
        here((0, fingerprint(path)))
    with pytest.raises(UsageError, match="an executor of Spark has Polars"):
        steps.StepApart(step, tmp_path, files.hashing() + 1)((0, fingerprint(path)))
    with pytest.raises(InputError, match=r"1.ndjson: an executor of Spark does not see it"):
        steps.fingerprint_apart(tmp_path / "1.ndjson")


@pytest.mark.deep
def test_executors_without_karat(
    spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(python))
    with open_engine("spark") as engine, pytest.raises(UsageError, match="lacks the package"):
        engine.spread(fingerprint, [python])  # type: ignore[attr-defined]


SCRIPT = """
import sys
from karat.store.events import files
files.FILE = 100
from karat.workflows.online.import_events import import_events
import_events(sys.argv[1], sys.argv[2:], now=%d, engine="spark", master="local[2]")
"""


@pytest.mark.deep  # a Java of its own
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_import_changes_nothing(spark: None, tmp_path: Path) -> None:
    everything, store = logs(tmp_path / "logs"), tmp_path / "s"
    import_events(store, [everything / "c.parquet"], now=NOW)
    before, manifest = content(store)
    shutil.copytree(store, tmp_path / "other")
    command = [sys.executable, "-c", SCRIPT % NOW, str(store), str(everything)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not list(store.glob("000002*.parquet")):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "it ended before it could be killed"
    events, listed = content(store)
    assert events.equals(before)
    assert listed == manifest
    for folder, engine in ((store, "spark"), (tmp_path / "other", "polars")):
        import_events(folder, [everything], now=NOW, engine=engine)  # type: ignore[arg-type]
    assert content(store)[0].equals(content(tmp_path / "other")[0])
