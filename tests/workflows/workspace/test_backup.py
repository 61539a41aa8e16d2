"""Backup and restore of a workspace: files, settings, and what is refused before anything is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import polars as pl
import pytest
from tests.stored_runs import stored_run_rows

from karat.errors import InputError, KaratError, UsageError
from karat.formats.own import bundle
from karat.formats.own.click_grades import click_grades_file
from karat.store.sql import copying, opening
from karat.tables.run import Run
from karat.workflows.workspace.backup import back_up, restore
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace, open_workspace

NOW = 1_800_000_000_000_000


@pytest.fixture
def lived_in(shop: Workspace) -> Workspace:
    """A workspace with a run and a history."""
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1.0]})
    store_runs(shop, [Run.from_frame(frame, name="old")], now=NOW)
    (shop.workspace.root / "history.jsonl").write_text("{}\n")
    (shop.workspace.runs / ".half.parquet.part").write_text("half")
    (shop.workspace.root / "gate.toml").write_text("[[rule]]\n")
    (shop.workspace.root / "held_out.jsonl").write_text("{}\n")
    (shop.workspace.root / "corpus.jsonl").write_text("{}\n")
    grades = click_grades_file(shop.workspace.root, "shop")
    grades.parent.mkdir()
    grades.write_bytes(b"grades")
    (shop.workspace.root / "secret.env").write_text("not karat's")
    return shop


@pytest.mark.parametrize("ending", bundle.ENDINGS)
def test_what_belongs_to_a_workspace_is_there_again(
    lived_in: Workspace, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"kept{ending}"
    made = back_up(lived_in, path, now=NOW)
    assert path.stat().st_mode & 0o077 == 0
    assert made.rows["golden_set"] == 1
    # karat.toml, guideline.md, gate.toml, history.jsonl, held_out.jsonl, the grades, the run
    assert made.files == 7
    held, workspace = restore(path, tmp_path / "new", environment={})
    assert (held.rows, held.files) == (made.rows, 7)
    assert click_grades_file(tmp_path / "new", "shop").read_bytes() == b"grades"
    assert {each.name for each in (tmp_path / "new").iterdir()} == {
        "karat.toml",
        "click-grades",
        "guideline.md",
        "gate.toml",
        "held_out.jsonl",
        "history.jsonl",
        "karat.db",
        "runs",
    }
    with open_workspace(tmp_path / "new", now=NOW, environment={}) as opened:
        assert stored_run_rows(opened)[0].to_dict() == {"q": {"d": 1.0}}
        assert opened.golden.salt == lived_in.golden.salt
        assert opened.workspace.notes == ()
    assert workspace.root == (tmp_path / "new").resolve()


def test_a_backup_is_not_overwritten_and_says_what_it_is(
    lived_in: Workspace, tmp_path: Path
) -> None:
    back_up(lived_in, tmp_path / "kept.zip", now=NOW)
    with pytest.raises(UsageError, match="already exists"):
        back_up(lived_in, tmp_path / "kept.zip", now=NOW)
    with pytest.raises(UsageError, match=r"use the extension \.zip"):
        back_up(lived_in, tmp_path / "kept.rar", now=NOW)
    with pytest.raises(InputError, match=r"already exists|cannot"):
        back_up(lived_in, tmp_path / "none" / "kept.zip", now=NOW)


def test_a_folder_that_is_not_empty_is_left_alone(lived_in: Workspace, tmp_path: Path) -> None:
    back_up(lived_in, tmp_path / "kept.zip", now=NOW)
    (tmp_path / "new").mkdir()
    (tmp_path / "new/mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        restore(tmp_path / "kept.zip", tmp_path / "new", environment={})
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["mine.txt"]
    (tmp_path / "new/mine.txt").unlink()
    restore(tmp_path / "kept.zip", tmp_path / "new", environment={})


def test_a_store_outside_of_the_folder_is_made_only_where_somebody_says_so(
    lived_in: Workspace, tmp_path: Path
) -> None:
    toml = lived_in.workspace.root / "karat.toml"
    elsewhere = tmp_path / "elsewhere.db"
    text = toml.read_text().replace("sqlite:///karat.db", f"sqlite:///{elsewhere}")
    toml.write_text(text)
    back_up(lived_in, tmp_path / "kept.zip", now=NOW)
    with pytest.raises(UsageError, match="outside ") as refused:
        restore(tmp_path / "kept.zip", tmp_path / "new", environment={})
    assert refused.value.fix is not None
    assert "--store sqlite:///karat.db" in refused.value.fix
    assert not elsewhere.exists()
    assert not (tmp_path / "new").exists()
    restore(tmp_path / "kept.zip", tmp_path / "new", store="sqlite:///karat.db", environment={})
    assert (tmp_path / "new/karat.db").is_file()
    changed = (tmp_path / "new/karat.toml").read_text()
    assert changed.count("store =") == 1
    assert "raters = 2  # " in changed  # the rest is as somebody wrote it


def test_a_damaged_backup_is_refused_before_anything_is_made(
    lived_in: Workspace, tmp_path: Path
) -> None:
    back_up(lived_in, tmp_path / "kept.tar", now=NOW)
    whole = (tmp_path / "kept.tar").read_bytes()
    bad = tmp_path / "bad.tar"
    at = whole.index(b"query_id") if b"query_id" in whole else whole.index(b"[golden]")
    cut = len(whole) - 11_000
    for data in (whole[:at] + b"X" + whole[at + 1 :], whole[:cut], b"", b"PK\3\4", b"\0" * 4096):
        bad.write_bytes(data)
        with pytest.raises(
            InputError, match=r"damaged|not a backup|no backup|end is lost"
        ) as refused:
            restore(bad, tmp_path / "new", environment={})
        assert not (tmp_path / "new").exists()
        assert not re.search(r"Error|method|gz|header|\n", refused.value.what)
    back_up(lived_in, tmp_path / "kept.zip", now=NOW)
    whole = (tmp_path / "kept.zip").read_bytes()
    bad = tmp_path / "bad.zip"
    for data in (whole[:-30], whole[: len(whole) // 2], whole[:60] + b"\0" * 40 + whole[100:]):
        bad.write_bytes(data)
        with pytest.raises(InputError, match=r"damaged") as refused:
            restore(bad, tmp_path / "new", environment={})
        assert not (tmp_path / "new").exists()
        assert not re.search(r"Error|method|gz|header|\n", refused.value.what)
    with pytest.raises(InputError, match="cannot be read"):
        restore(tmp_path / "none.zip", tmp_path / "new", environment={})


def test_a_newer_backup_is_refused_and_an_older_one_is_brought_up_to_date(
    lived_in: Workspace, tmp_path: Path
) -> None:
    """Version 0003 had no accounts: what is made of it is at the newest version, and empty there.

    The tables here are the same in both.
    """
    with lived_in.store.read() as c:
        known = {"golden_set", "guideline", "run"}
        rows = {name: list(copying.rows(c, name)) for name in copying.TABLES if name in known}
    for version in ("0003", "9999"):
        about = {"schema": version, "rows": {name: len(found) for name, found in rows.items()}}
        with bundle.writing(tmp_path / f"{version}.zip", about) as made:
            for name in copying.TABLES:
                if name in rows:
                    table = tmp_path / "rows"
                    table.write_text("".join(json.dumps(row) + "\n" for row in rows[name]))
                    made.add(f"tables/{name}.jsonl", table)
            made.add("workspace/karat.toml", lived_in.workspace.root / "karat.toml")
    with pytest.raises(UsageError, match="newer karat"):
        restore(tmp_path / "9999.zip", tmp_path / "new", environment={})
    assert not (tmp_path / "new").exists()
    restore(tmp_path / "0003.zip", tmp_path / "new", environment={})
    with open_workspace(tmp_path / "new", now=NOW, environment={}) as opened:
        assert opened.golden.salt == lived_in.golden.salt
        with opened.store.read() as c:
            assert [row["name"] for row in copying.rows(c, "run")] == ["old"]
            assert list(copying.rows(c, "person")) == []
    assert opening.VERSIONS[-1] != "0003"


def test_rows_that_no_table_takes_leave_nothing_behind(lived_in: Workspace, tmp_path: Path) -> None:
    back_up(lived_in, tmp_path / "kept.zip", now=NOW)
    with zipfile.ZipFile(tmp_path / "kept.zip") as archive:
        toml = tmp_path / "toml"
        toml.write_bytes(archive.read("workspace/karat.toml"))
    for number, line in enumerate(('{"id": 1}', "[1]", "{", '{"id": 1, "name": "x; DROP"}')):
        path = tmp_path / f"{number}.zip"
        with bundle.writing(path, {"schema": opening.VERSIONS[-1], "rows": {}}) as made:
            rows = tmp_path / "rows"
            rows.write_text(line + "\n")
            made.add("tables/golden_set.jsonl", rows)
            made.add("workspace/karat.toml", toml)
        with pytest.raises(KaratError, match=r"columns|not a row"):
            restore(path, tmp_path / "new", environment={})
        assert not (tmp_path / "new").exists()


def test_tables_are_of_one_moment(lived_in: Workspace, tmp_path: Path) -> None:
    """What is added while tables are read is in none of them."""
    with lived_in.store.read() as c:
        first = list(copying.rows(c, "golden_set"))
        with lived_in.store.begin() as other:
            other.exec_driver_sql(
                "INSERT INTO golden_set SELECT 7, 'late', scale_low, scale_high, grades, raters, "
                "repeats, salt, created_us FROM golden_set"
            )
        assert list(copying.rows(c, "golden_set")) == first
    path = tmp_path / "kept.tgz"
    assert back_up(lived_in, path, now=NOW).rows["golden_set"] == 2
    with tarfile.open(path) as archive:
        assert archive.getnames()[-1] == bundle.HEAD


@pytest.mark.deep  # a kill; what fails, in this process: the next ones
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name (Linux)")
def test_a_killed_backup_leaves_nothing_behind(lived_in: Workspace, tmp_path: Path) -> None:
    kept, temporary = tmp_path / "kept", tmp_path / "temporary"
    kept.mkdir()
    temporary.mkdir()
    script = f"""
import os, signal
from pathlib import Path
from karat.workflows.workspace import backup
from karat.workflows.workspace.workspace import open_workspace

files = backup._files
def killed(workspace):
    os.kill(os.getpid(), signal.SIGKILL)  # the tables with the hashes are written
backup._files = killed
with open_workspace(Path({str(lived_in.workspace.root)!r}), now={NOW}, environment={{}}) as opened:
    backup.back_up(opened, Path({str(kept / "b.zip")!r}), now={NOW})
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert list(kept.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_a_backup_where_files_need_a_name(
    lived_in: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karat.formats.tables.writing._nameless", lambda _folder: None)
    back_up(lived_in, tmp_path / "b.zip", now=NOW)
    assert (tmp_path / "b.zip").stat().st_mode & 0o077 == 0
    assert not list(tmp_path.glob(".*.part"))
