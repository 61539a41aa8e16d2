"""Logs that are not UTF-8: what they look like is said, and what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import InputError
from karat.workflows.online.import_events import import_events

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
HEAD = "time,user_id,query_id,{},hits\n"
ROW = "2026-11-20T10:00:00Z,v{},s{},{},p1\n"
LINE = '{{"user_id":"u","time":"2026-11-20T10:00:00Z","query_id":"s{}","query":"{}"}}'


def refused(folder: Path, data: bytes) -> str:
    """Why a log is refused."""
    log = folder / "log"
    log.write_bytes(data)
    with pytest.raises(InputError) as caught:
        import_events(folder / "store", [log], now=NOW)
    return str(caught.value)


@pytest.mark.parametrize(
    ("code", "word", "name"),
    [("latin1", "Wörter", "Latin-1"), ("cp1252", "Wörter in €", "Windows-1252")],
)
def test_names_of_columns_in_another_encoding(
    code: str, word: str, name: str, tmp_path: Path
) -> None:
    said = refused(tmp_path, (HEAD.format(word) + ROW.format(1, 1, "pie")).encode(code))
    assert f"log, line 1: not UTF-8; it looks like {name}\n" in said
    assert f"fix: save the file as UTF-8: iconv -f {code} -t UTF-8 " in said
    assert "utf8-log, and import that" in said
    assert "\ufffd" not in said


@pytest.mark.parametrize("form", ["cells", "lines"])
def test_lines_in_another_encoding_are_named_as_such(form: str, tmp_path: Path) -> None:
    if form == "cells":
        text = HEAD.format("query") + "".join(ROW.format(n, n, "Öl" if n else "x") for n in (0, 1))
    else:
        text = "\n".join(LINE.format(n, "Öl" if n else "x") for n in (0, 1)) + "\n"
    log = tmp_path / "log"
    log.write_bytes(text.encode("latin1"))
    found = import_events(tmp_path / "store", [log], now=NOW)
    assert (found.kept, found.dropped) == (1, {"not UTF-8": 1})
    [said] = [each for each in found.assumed if "looks like" in each]
    assert said.startswith(f"{log} is not UTF-8, and looks like Latin-1: 1 line of it was dropped")
    assert f"iconv -f latin1 -t UTF-8 {log} > utf8-log" in said


@pytest.mark.parametrize("array", [False, True])
def test_json_in_another_encoding_is_not_called_damaged(array: bool, tmp_path: Path) -> None:
    line = LINE.format(1, "Öl")
    said = refused(tmp_path, (f"[{line}]" if array else line + "\n").encode("latin1"))
    assert "looks like Latin-1" in said
    saved = "save the file as UTF-8: " if array else ""
    assert f"fix: {saved}iconv -f latin1 -t UTF-8" in said
    # An array is read in letters: a byte that is none of UTF-8 is never kept as another letter.
    assert "damaged" not in said
