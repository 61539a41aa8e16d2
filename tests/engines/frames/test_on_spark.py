"""The session that karat opens on Spark: where it runs, and how."""

from __future__ import annotations

from typing import Any

import pytest

from karat.engines.frames.opening import open_engine
from karat.errors import KaratError, UsageError

sql = pytest.importorskip("pyspark.sql", reason="needs the package pyspark")


def configured(monkeypatch: pytest.MonkeyPatch, master: str | None) -> dict[str, Any]:
    """What a session is asked for; none is started, for there is no cluster to start it on."""
    asked: dict[str, Any] = {}

    def stop_here(builder: Any) -> None:
        asked.update(builder._options)
        raise RuntimeError("no cluster here")

    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(sql.SparkSession.Builder, "getOrCreate", stop_here)
    monkeypatch.setattr(sql.SparkSession, "builder", sql.SparkSession.Builder())
    with pytest.raises(KaratError, match="Spark does not start: no cluster here"):
        open_engine("spark", master=master).__enter__()
    return asked


def test_a_cluster_is_asked_for_and_keeps_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(monkeypatch, "spark://host:7077") == {
        "spark.app.name": "karat", "spark.master": "spark://host:7077",
    }  # fmt: skip
    assert configured(monkeypatch, "yarn")["spark.master"] == "yarn"
    assert "spark.master" not in configured(monkeypatch, None)  # Spark's own configuration says


def test_on_one_machine_nothing_listens_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = configured(monkeypatch, "local[2]")
    assert asked["spark.master"] == "local[2]"
    assert asked["spark.ui.enabled"] == "false"
    assert asked["spark.driver.bindAddress"] == "127.0.0.1"


def test_s3_without_its_package() -> None:
    class Session:
        """One whose classes lack hadoop-aws."""

        read = property(lambda self: self)

        def option(self, *_: str) -> Session:
            return self

        def parquet(self, path: str) -> None:
            assert path == "s3a://logs/events/1.parquet"
            raise RuntimeError("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")

    engine = open_engine("spark")
    engine._session = Session()  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="lacks the package hadoop-aws"):
        engine._read(["s3://logs/events/1.parquet"], ["user_key"], None, None)  # type: ignore[attr-defined]
