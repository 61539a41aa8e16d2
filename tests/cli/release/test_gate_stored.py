"""karat gate in a workspace: its result is stored, and nothing of that changes the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.cli.release.test_gate import DROP, QUERIES, Capture, Karat, files, karat, run_file

from karat.cli.release import trend
from karat.formats.own import history
from karat.store.sql.opening import VERSION_TABLE
from karat.tables.release.gate import GateRecord
from karat.workflows.release.stored_gates import gate_record, gates_listed
from karat.workflows.workspace.workspace import make_workspace, open_workspace

__all__ = ["files", "karat"]
SURE = f'{DROP}evidence = "interval"\n'
STORED = "karat: the result is stored in the workspace: /gates/{}\n"


@pytest.fixture
def shop(files: Path, new_sqlite: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files is a folder of a workspace."""
    monkeypatch.delenv("KARAT_STORE", raising=False)
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION"):
        monkeypatch.delenv(name, raising=False)
    new_sqlite(files / "karat.db")
    make_workspace(files, now=1, name="shop", environment={})
    inner = files / "runs"
    inner.mkdir(exist_ok=True)
    for path in ("qrels", "old.trec", "new.trec", "gate.toml"):
        (inner / path).write_bytes((files / path).read_bytes())
    monkeypatch.chdir(inner)
    return files


def stored(shop: Path) -> list[GateRecord]:
    """All results, newest first."""
    with open_workspace(shop, now=2, environment={}) as opened:
        records = [gate_record(opened, row.id) for row in gates_listed(opened)]
    return [record for record in records if record is not None]


def test_each_verdict_is_stored(karat: Karat, shop: Path, capsys: Capture) -> None:
    run_file(Path("none.trec"), 0, QUERIES)
    run_file(Path("mixed.trec"), 2, QUERIES[:3])
    with Path("mixed.trec").open("a") as rest:
        run_file(Path("rest.trec"), 1, QUERIES[3:])
        rest.write(Path("rest.trec").read_text())
    with Path("qrels").open("a") as judged:
        judged.writelines(f"{query} 0 x1 0\n" for query in QUERIES)
    Path("sure.toml").write_text(SURE)
    asked = [
        ("pass", 0, "gate.toml", "old.trec", "old.trec"),
        ("fail", 1, "gate.toml", "old.trec", "new.trec"),
        # Three of thirty drop by a half: .05, its interval from below 0 to above the limit of .05.
        ("cannot_tell", 3, "sure.toml", "old.trec", "mixed.trec"),
        ("error", 4, "gate.toml", "none.trec", "old.trec"),
    ]
    for number, (verdict, code, policy, *runs) in enumerate(asked, 1):
        assert karat("--policy", policy, "qrels", *runs, "--commit", "abc") == code, verdict
        said = capsys.readouterr()
        assert said.err == STORED.format(number)
        assert said.out.startswith(verdict.replace("_", " "))
    found = stored(shop)
    assert [record.row.verdict for record in found[::-1]] == [each[0] for each in asked]
    row = found[2].row
    assert (row.source, row.commit, row.policy, row.candidate) == (
        "command", "abc", "gate.toml", "new",
    )  # fmt: skip
    assert row.person
    assert found[2].gate.lost


def test_json_is_what_it_is_elsewhere_and_what_is_stored(
    karat: Karat, shop: Path, capsys: Capture
) -> None:
    words = ("--policy", "gate.toml", "qrels", "old.trec", "new.trec", "-f", "json")
    assert karat(*words) == 1
    inside = capsys.readouterr()
    assert karat(*words, "--no-keep") == 1
    left_out = capsys.readouterr()
    assert inside.out == left_out.out
    assert left_out.err == ""
    [record] = stored(shop)
    assert record.gate.to_dict() == json.loads(inside.out)


def test_a_point_of_the_history_has_its_gate(
    karat: Karat, shop: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(trend, "send", lambda _url, event: sent.append(event))
    words = ("--policy", "gate.toml", "qrels", "old.trec", "new.trec")
    path = shop / "history.jsonl"
    assert karat(*words, "--history", str(path), "--notify", "http://localhost:9") == 1
    [record] = stored(shop)
    assert (record.places.history, record.places.series) == ("history.jsonl", "new")
    [point] = history.read(path)
    assert trend.moment(record.row.time_us) == point.time
    assert [event["page"] for event in sent] == ["/gates/1"]
    assert karat(*words, "--no-keep", "--notify", "http://localhost:9") == 1
    assert "page" not in sent[1]


def test_a_store_that_cannot_keep_it_is_a_note(
    karat: Karat, shop: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--policy", "gate.toml", "qrels", "old.trec", "old.trec")

    def noted() -> str:
        assert karat(*words) == 0
        said = capsys.readouterr()
        assert said.out.startswith("pass: ")
        assert said.err.startswith("karat: the result is not stored: ")
        assert "Traceback" not in said.err
        return said.err

    engine = sa.create_engine(f"sqlite:///{shop / 'karat.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '0006'")
    engine.dispose()
    assert "is at version 0006; this karat needs " in noted()
    (shop / "karat.db").write_bytes(b"nonsense" * 1000)
    assert "not a database" in noted()
    (shop / "karat.db").unlink()
    assert "there is no store at " in noted()
    text = (shop / "karat.toml").read_text()
    (shop / "karat.toml").write_text(text.replace("raters = 2", "raters = 0"))
    assert "karat.toml" in noted()
    (shop / "karat.toml").write_text(text)
    url = "postgresql://karat:hunter2@127.0.0.1:9/shop"
    monkeypatch.setenv("KARAT_STORE", url)
    assert "hunter2" not in noted()


def test_another_golden_set_is_not_made_and_nothing_is_changed(
    karat: Karat, shop: Path, capsys: Capture
) -> None:
    path = shop / "karat.toml"
    path.write_text(path.read_text().replace('name = "shop"', 'name = "shoe"'))
    (shop / "guideline.md").write_text("other words\n")
    assert karat("--policy", "gate.toml", "qrels", "old.trec", "old.trec") == 0
    said = capsys.readouterr().err
    assert "the result is not stored" in said
    assert "shop" in said, "the nearest name"
    path.write_text(path.read_text().replace('name = "shoe"', 'name = "shop"'))
    assert karat("--policy", "gate.toml", "qrels", "old.trec", "old.trec") == 0
    assert capsys.readouterr().err == STORED.format(1), "the guideline is not a note of a gate"


def test_settings_of_commands_are_not_a_workspace(
    karat: Karat, files: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KARAT_STORE", raising=False)
    for text in ("", '[defaults]\nmeasures = ["RR"]\n'):
        (files / "karat.toml").write_text(text)
        assert karat("--policy", "gate.toml", "qrels", "old.trec", "old.trec") == 0
        assert capsys.readouterr().err == ""


def test_what_could_not_be_checked_is_not_stored(karat: Karat, shop: Path, capsys: Capture) -> None:
    assert karat("--policy", "gone.toml", "qrels", "old.trec", "new.trec") == 2
    assert karat("--save-baseline", "main.json", "qrels", "old.trec", "-m", "RR") == 0
    assert "stored" not in capsys.readouterr().err
    assert stored(shop) == []
