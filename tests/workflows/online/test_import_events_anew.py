"""What is remembered of a file, and what a mapping names that a log lacks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.store.events import files
from karat.store.events.log import MANIFEST, read_event_log, read_manifest
from karat.workflows.online._import_ranges import STORED, TWICE
from karat.workflows.online.import_events import import_events

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
TEN = 1_795_168_800  # 2026-11-20T10:00:00Z
SHOP = "when,who,what,article\n20.11.2026 11:00:00,v1,opened,p1\n20.11.2026 11:01:00,v1,look,p2\n"
MAPPING = """[columns]
time = "when"
user_id = "who"
action = "what"
doc_id = "article"
[time]
format = "%d.%m.%Y %H:%M:%S"
"""


def log(path: Path, rows: Sequence[object]) -> Path:
    """A file with an object a line."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def click(action: str = "click", seconds: int = 0, **more: object) -> dict[str, object]:
    """A click, seconds after ten."""
    row = {"action_name": action, "client_id": "u", "timestamp": TEN + seconds, "doc_id": "d"}
    return {**row, **more}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A log of somebody's own, which nothing of is read without a mapping."""
    path = tmp_path / "shop.csv"
    path.write_text(SHOP)
    return path


def mapping(folder: Path, text: str = MAPPING, name: str = "m.toml") -> Path:
    """A mapping as a file."""
    (folder / name).write_text(text)
    return folder / name


def test_a_file_without_an_event_is_not_remembered(shop: Path, tmp_path: Path) -> None:
    store = tmp_path / "s"
    with pytest.raises(InputError) as refused:
        import_events(store, [shop], now=NOW)
    said = str(refused.value)
    assert "no row is an event" in said
    assert "columns: when, who, what, article" in said
    assert "--mapping FILE" in said
    assert read_manifest(store) is None
    timed = mapping(tmp_path, '[columns]\ntime = "when"\naction = "what"\nuser_id = "who"\n')
    with pytest.raises(InputError, match=r"a time: '20\.11\.2026 11:00:00'"):
        import_events(store, [shop], now=NOW, mapping=timed)
    done = import_events(store, [shop], now=NOW, mapping=mapping(tmp_path))
    assert (done.number, done.kept) == (1, 2)


def test_beside_others_it_is_said_and_read_again(shop: Path, tmp_path: Path) -> None:
    store, good = tmp_path / "s", log(tmp_path / "a.ndjson", [click()])
    done = import_events(store, [good, shop], now=NOW)
    assert done.kept == 1
    assert any("the next import reads it" in said and "shop.csv" in said for said in done.assumed)
    manifest = read_manifest(store)
    assert manifest is not None
    assert list(manifest.imports[0].files) == [str(good)]
    # Alone with what is skipped there is nothing that could be read.
    with pytest.raises(InputError, match="no row is an event"):
        import_events(store, [good, shop], now=NOW)


def test_what_is_all_there_or_empty_is_fine(tmp_path: Path) -> None:
    store = tmp_path / "s"
    import_events(store, [log(tmp_path / "a.ndjson", [click(), click(seconds=1)])], now=NOW)
    done = import_events(store, [log(tmp_path / "b.ndjson", [click()])], now=NOW)
    assert (done.kept, done.dropped) == (0, {STORED: 1})
    (tmp_path / "empty.ndjson").touch()
    assert import_events(store, [tmp_path / "empty.ndjson"], now=NOW).rows == 0


def test_by_another_mapping_it_is_read_again(shop: Path, tmp_path: Path) -> None:
    store, first = tmp_path / "s", mapping(tmp_path)
    assert import_events(store, [shop], now=NOW, mapping=first).kept == 2
    # A comment, or another place, is no other mapping.
    same = mapping(tmp_path, f"# ours\n{MAPPING}", "n.toml")
    assert import_events(store, [shop], now=NOW, mapping=same).number is None
    more = mapping(tmp_path, f'{MAPPING}[kinds]\nopened = "click"\n')
    done = import_events(store, [shop], now=NOW, mapping=more)
    # What is a click now was kept as other; the second event is the same by both.
    assert (done.kept, done.kinds, done.dropped) == (1, {"click": 1}, {STORED: 1})
    assert any("imported before with another mapping" in said for said in done.assumed)
    assert import_events(store, [shop], now=NOW, mapping=more).number is None


def test_a_check_keeps_nothing(shop: Path, tmp_path: Path) -> None:
    store = tmp_path / "s"
    done = import_events(store, [shop], now=NOW, mapping=mapping(tmp_path), check=True)
    assert (done.number, done.kept, done.kinds) == (None, 2, {"other": 2})
    assert not store.exists()
    import_events(store, [log(tmp_path / "a.ndjson", [click()])], now=NOW)
    before = {path: path.read_bytes() for path in store.iterdir()}
    again = log(tmp_path / "b.ndjson", [click(), click(seconds=9)])
    done = import_events(store, [again], now=NOW, check=True)
    assert (done.kept, done.dropped) == (1, {STORED: 1})
    assert {path: path.read_bytes() for path in store.iterdir()} == before


@pytest.mark.parametrize(
    ("named", "key"),
    [('[columns]\naction = "whta"\n', "[columns] action"),
     ('[attributes]\nshop = "whta"\n', "[attributes] shop")],
)  # fmt: skip
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_that_a_table_lacks(
    named: str, key: str, form: str, shop: Path, tmp_path: Path
) -> None:
    path = shop
    if form == "parquet":
        path = tmp_path / "shop.parquet"
        pl.read_csv(shop).write_parquet(path)
    with pytest.raises(InputError) as refused:
        import_events(tmp_path / "s", [path], now=NOW, mapping=mapping(tmp_path, named))
    assert f"m.toml: {key}: there is no column 'whta'" in str(refused.value)
    assert "did you mean 'what'" in str(refused.value)
    # Another file of the same import may have it.
    other = tmp_path / "other.csv"
    other.write_text("time,user_id,action,whta\n1795168800,u,click,click\n")
    done = import_events(tmp_path / "s", [path, other], now=NOW, mapping=mapping(tmp_path, named))
    assert done.kept == 1


def test_a_column_that_lines_lack_is_said(tmp_path: Path) -> None:
    named = (
        '[columns]\nquery = "wrods"\ndoc_id = "object.object_id"\n[attributes]\nshop = "plcae"\n'
    )
    path = log(tmp_path / "a.ndjson", [click(words="x", place="y", object={"object_id": "d"})])
    done = import_events(tmp_path / "s", [path], now=NOW, mapping=mapping(tmp_path, named))
    about = [said for said in done.assumed if "of the mapping" in said]
    assert about == [
        "[columns] query of the mapping: 'wrods' has no value in any row; did you mean 'words'?",
        "[attributes] shop of the mapping: 'plcae' has no value in any row; did you mean 'place'?",
    ]


def test_kind_and_not_the_action_tells_events_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trackers call a click differently; of what is no kind of karat's the action counts."""
    store, rows = tmp_path / "s", [click("click"), click("item_click"), click("a"), click("b")]
    done = import_events(store, [log(tmp_path / "a.ndjson", rows)], now=NOW)
    assert (done.kinds, done.dropped) == ({"click": 1, "other": 2}, {TWICE: 1})
    later = log(tmp_path / "b.ndjson", [click("select_item"), click("c")])
    # By the values themselves it is the same as by their hash.
    for way in (files.hashing, lambda: 1):
        monkeypatch.setattr(files, "hashing", way)
        done = import_events(store, [later], now=NOW, check=True)
        assert (done.kinds, done.dropped) == ({"other": 1}, {STORED: 1})
    assert read_event_log(store).rows == 3
    assert (store / MANIFEST).is_file()


def test_positions_before_the_first_are_counted(tmp_path: Path) -> None:
    rows = [click(seconds=at, position=at) for at in range(3)]
    path = log(tmp_path / "a.ndjson", rows)
    done = import_events(tmp_path / "s", [path], now=NOW, position_base=1)
    assert "positions before the first, left out: 1" in done.assumed


def test_values_that_cannot_be_read_are_said_with_the_first(tmp_path: Path) -> None:
    path = log(tmp_path / "a.ndjson", [click("purchase", revenue="80,00"), click(seconds=1)])
    done = import_events(tmp_path / "s", [path], now=NOW)
    (said,) = (each for each in done.assumed if each.startswith("revenue is not a number"))
    assert said.endswith(": 1, left out; the first: '80,00'")


def test_clocks_that_change_are_said(tmp_path: Path) -> None:
    stamps = ("2026-10-25 02:30:00", "2026-03-29 02:30:00", "2026-10-25 04:00:00")
    path = log(tmp_path / "a.ndjson", [click(timestamp=stamp) for stamp in stamps])
    done = import_events(tmp_path / "s", [path], now=NOW, clocks="Europe/Berlin")
    assert any("repeat in autumn: 1; assumed the earlier" in said for said in done.assumed)
    assert any("skip in spring: 1; assumed an hour later" in said for said in done.assumed)
