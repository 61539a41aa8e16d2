"""Uploads: they lie under a safe name for as long as they are read."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fastapi import UploadFile

from karat.errors import UsageError
from karat.web.framework.uploads import own_place, uploaded


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("runs/bm25.trec", "bm25.trec"),
        ("C:\\ann\\my log.csv.gz", "my log.csv.gz"),
        ("../../etc/passwd", "passwd"),
        ("..", ".."),
        ("/", "log"),
        ("é" * 400 + ".csv", "é" * 200),
    ],
)
def test_it_lies_in_a_folder_of_its_own_and_is_gone_afterwards(
    name: str, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with uploaded(UploadFile(io.BytesIO(b"1 Q0 a"), filename=name), "log") as (path, told):
        assert path.read_bytes() == b"1 Q0 a"
        assert path.resolve().parent.parent == tmp_path
        assert path.suffix == Path(name.replace("\\", "/")).suffix
        assert told == called
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sent", [None, UploadFile(io.BytesIO(b""), filename="")])
def test_a_form_without_a_file_is_told(sent: UploadFile | None) -> None:
    with pytest.raises(UsageError, match="no log was chosen"), uploaded(sent, "log"):
        pass


KILLED = """
import os, signal, tempfile
from karat.web.framework.uploads import own_place
with own_place():
    tempfile.mkdtemp(prefix="karat-")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.deep  # kills a process
@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_what_a_killed_server_left_is_removed_by_the_next_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False)
    [left] = tmp_path.iterdir()
    assert len(list(left.iterdir())) == 2  # the lock, and what lay there
    (tmp_path / "karat-serve-mine").mkdir()  # begun by another process just now: no lock yet
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with own_place():
        assert not left.exists()
        here = Path(tempfile.mkdtemp(prefix="karat-"))
        assert here.parent.parent == tmp_path
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with own_place():  # of another process: it leaves alone what is in use
            assert here.exists()
    assert [each.name for each in tmp_path.iterdir()] == ["karat-serve-mine"]
    assert tempfile.gettempdir() == str(tmp_path)
