"""Logs into the event store: each event once, what is dropped and assumed said."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.errors import InputError, UsageError
from karat.store.events import files
from karat.store.events import log as events
from karat.store.events.log import importing, read_event_log, read_manifest
from karat.tables.online.events import EventLog
from karat.tables.schema import EVENTS
from karat.workflows.online._import_notes import DAMAGED, REFUSED
from karat.workflows.online._import_ranges import STORED, SUB_QUERY, TWICE
from karat.workflows.online.import_events import import_events

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
TEN = 1_795_168_800_000_000  # 2026-11-20T10:00:00Z


def search(user: str, query_id: str, seconds: float = 0, **more: object) -> dict[str, object]:
    """A record of a query, seconds after ten o'clock."""
    stamp = TEN + int(seconds * 1e6)
    record = {"query_id": query_id, "client_id": user, "timestamp": stamp, "user_query": "shoes"}
    return {**record, "query_response_hit_ids": ["d1", "d2"], **more}


def event(
    action: str, user: str, query_id: str | None, seconds: float, position: int | None = None,
    doc: str = "d1", **more: object,
) -> dict[str, object]:  # fmt: skip
    """An event, seconds after ten o'clock."""
    inner: dict[str, object] = {"object": {"object_id": doc}}
    if position is not None:
        inner["position"] = {"ordinal": position}
    stamp = TEN + int(seconds * 1e6)
    base = {"action_name": action, "client_id": user, "timestamp": stamp, **more}
    return {**base, "query_id": query_id, "event_attributes": inner}


def log(path: Path, rows: Sequence[object]) -> Path:
    """A file with an object a line."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def held(folder: Path) -> pl.DataFrame:
    """All events of a store, in its order."""
    found: EventLog = read_event_log(folder)
    frames = [pl.read_parquet(each.path) for each in found.files]
    return pl.concat(frames, how="diagonal").sort("user_bucket", "user_key", "time_us", "tie")


def shape(folder: Path) -> list[dict[str, Any]]:
    """The events of a store but for which import brought them."""
    return held(folder).drop("import").to_dicts()


def traffic(users: int = 40, seed: int = 1) -> list[dict[str, object]]:
    """Searches with clicks of some users, out of order."""
    draw = random.Random(seed)
    rows: list[dict[str, object]] = []
    for user in range(users):
        for at in range(draw.randrange(1, 6)):
            name, start = f"q{user}-{at}", draw.random() * 40_000
            rows.append(search(f"u{user}", name, start, query_attributes={"device": "phone"}))
            for place in range(draw.randrange(4)):
                action = draw.choice(["click", "impression", "add_to_cart", "hover"])
                rows.append(event(action, f"u{user}", name, start + place + 1, place, f"d{place}"))
    draw.shuffle(rows)
    return rows


def test_an_import_keeps_what_the_log_says(tmp_path: Path) -> None:
    rows = [search("u", "q1"), event("click", "u", "q1", 5, 2), event("hover", "u", "q1", 6)]
    store = tmp_path / "events"
    done = import_events(
        store, [log(tmp_path / "a.ndjson", rows)], now=NOW, timezone="Europe/Berlin"
    )
    assert (done.number, done.rows, done.kept, done.dropped) == (1, 3, 3, {})
    assert done.kinds == {"click": 1, "other": 1, "search": 1}
    assert done.unknown == {"hover": 1}
    frame = held(store)
    assert frame.columns == [column.name for column in EVENTS]
    assert dict(frame.schema) == {column.name: column.dtype for column in EVENTS}
    # 2026-11-20 is day 20777, and ten o'clock UTC is eleven in Berlin.
    assert frame["local_day"].unique().to_list() == [20_777]
    assert frame["local_hour"].unique().to_list() == [11]
    assert frame["kind"].to_list() == ["search", "click", "other"]
    assert frame["position"].to_list() == [None, 2, None]
    assert frame["query_key"].to_list() == ["shoes", None, None]
    found = read_event_log(store)
    assert (found.rows, found.first_us, found.last_us) == (3, TEN, TEN + 6_000_000)
    assert found.timezone == "Europe/Berlin"
    assert {"query", "position", "hits"} <= found.known
    assert not {"arm", "latency_us", "value"} & found.known


def test_user_keys_are_the_first_bytes_of_sha_1(tmp_path: Path) -> None:
    import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", [search("abc", "q")])], now=NOW)
    # FIPS 180: SHA-1("abc") = a9993e36 4706816a …; a9 is 169.
    (row,) = shape(tmp_path / "s")
    assert row["user_bucket"] == 169
    assert row["user_key"] == int.from_bytes(bytes.fromhex("a9993e364706816a"), "big", signed=True)


def test_again_changes_nothing(tmp_path: Path) -> None:
    path, store = log(tmp_path / "a.ndjson", traffic()), tmp_path / "s"
    first = import_events(store, [path], now=NOW)
    before = (store / events.MANIFEST).read_bytes()
    again = import_events(store, [path, path], now=NOW + 1)
    assert (again.number, again.kept, again.skipped) == (None, 0, [str(path)])
    assert (store / events.MANIFEST).read_bytes() == before
    # The same events in another file are there already, one by one.
    other = import_events(store, [log(tmp_path / "b.ndjson", traffic()[::-1])], now=NOW)
    assert (other.kept, other.dropped) == (0, {STORED: first.kept})
    assert held(store).height == first.kept


def test_in_parts_it_is_the_same_store(tmp_path: Path, deep: bool) -> None:
    """Files one by one, overlapping and in another order: the events and their order are equal."""
    rows = traffic(60 if deep else 25)
    import_events(tmp_path / "one", [log(tmp_path / "all.ndjson", rows)], now=NOW, position_base=0)
    paths = [
        log(tmp_path / f"{at}.ndjson", rows[max(0, start - 20) : start + 50])
        for at, start in enumerate(range(0, len(rows), 50))
    ]
    for path in reversed(paths):
        import_events(tmp_path / "parts", [path], now=NOW, position_base=0)
    assert shape(tmp_path / "parts") == shape(tmp_path / "one")


@pytest.mark.parametrize("most", deep_but([4], [4, 16]))
def test_many_imports_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(events, "_MOST", most)
    rows = traffic(60)
    import_events(tmp_path / "one", [log(tmp_path / "all.ndjson", rows)], now=NOW, position_base=0)
    for at in range(most + 2):
        part = log(tmp_path / f"{at}.ndjson", rows[at :: most + 2])
        import_events(tmp_path / "parts", [part], now=NOW, position_base=0)
    # All but one of the first 5 or 17 became one file; that one and the last stand beside.
    assert len(read_event_log(tmp_path / "parts").files) == 3
    assert shape(tmp_path / "parts") == shape(tmp_path / "one")
    assert held(tmp_path / "parts")["import"].n_unique() == most + 2


@pytest.mark.deep
def test_a_large_import_is_cut_by_users_and_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits so low that it is staged on disk, in many pieces, and stored in many files."""
    path = log(tmp_path / "a.ndjson", traffic(200))
    import_events(tmp_path / "one", [path], now=NOW)
    monkeypatch.setattr(files, "FILE", 60)
    monkeypatch.setattr("karat.workflows.online._import_ranges._FLUSH", 50)
    monkeypatch.setattr("karat.workflows.online._import_ranges._HOLD", 50)
    monkeypatch.setattr("karat.formats.events.lines.CHUNK", 4096)
    import_events(tmp_path / "many", [path], now=NOW)
    found = read_event_log(tmp_path / "many")
    assert len(found.files) > 10
    assert shape(tmp_path / "many") == shape(tmp_path / "one")
    assert not (tmp_path / "many" / events.STAGING).exists()
    for each in found.files:
        frame = pl.read_parquet(each.path)
        assert frame["user_bucket"].is_between(each.low, each.high - 1).all()
        assert frame.equals(frame.sort(files.ORDER))
        assert frame.height == each.rows


def test_ties_are_unique_and_searches_first(tmp_path: Path) -> None:
    """Everything at one moment."""
    rows = [event("impression", "u", "q", 0, at, f"d{at}") for at in range(200)]
    rows += [event("click", "u", "q", 0, 3), search("u", "q"), search("u", "r")]
    import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", rows)], now=NOW)
    frame = held(tmp_path / "s")
    assert frame["tie"].n_unique() == 203
    assert frame["tie"].min() >= 0  # type: ignore[operator]
    assert frame["kind"].to_list() == ["search"] * 2 + ["impression"] * 200 + ["click"]
    assert frame["position"].drop_nulls().to_list()[:3] == [1, 2, 3]


def test_duplicates_and_sub_queries_are_counted_apart(tmp_path: Path) -> None:
    rows = [
        search("u", "q1"), search("u", "q1"), search("u", "q1", user_query="shoes nested"),
        event("click", "u", "q1", 5, 2), event("click", "u", "q1", 5, 2),
        event("click", "u", "q1", 5, 3), event("click", "u", "q1", 6, 2),
    ]  # fmt: skip
    done = import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", rows)], now=NOW)
    assert done.dropped == {TWICE: 2, SUB_QUERY: 1}
    assert done.examples[SUB_QUERY] == [f"{tmp_path / 'a.ndjson'}, line 3"]
    assert held(tmp_path / "s")["query"].drop_nulls().to_list() == ["shoes"]


def test_an_event_that_tells_of_a_recorded_search_is_no_second_one(tmp_path: Path) -> None:
    told = event("search", "u", "q1", 1, user_query="shoes")
    alone = event("search", "u", "q2", 60, user_query="boots")
    done = import_events(
        tmp_path / "s", [log(tmp_path / "a.ndjson", [search("u", "q1"), told, alone])], now=NOW
    )
    assert done.kinds == {"other": 1, "search": 2}
    assert any("with its own record" in said for said in done.assumed)


@pytest.mark.parametrize(
    ("positions", "given", "base", "kept"),
    [
        ([0, 3], None, 0, [1, 4]),
        ([1, 3], None, 1, [1, 3]),
        ([1, 3], 0, 0, [2, 4]),
        ([0, 3], 1, 1, [None, 3]),
    ],
)
def test_where_positions_begin(
    positions: list[int], given: int | None, base: int, kept: list[int | None], tmp_path: Path
) -> None:
    rows = [search("u", "q")]
    rows += [event("click", "u", "q", at + 1, place) for at, place in enumerate(positions)]
    path = log(tmp_path / "a.ndjson", rows)
    done = import_events(tmp_path / "s", [path], now=NOW, position_base=given)
    assert held(tmp_path / "s")["position"].to_list()[1:] == kept
    said = [each for each in done.assumed if each.startswith(f"positions begin at {base}")]
    assert bool(said) == (given is None)


def test_where_positions_begin_is_remembered(tmp_path: Path) -> None:
    """A later hour in which nobody clicked the first result says nothing else."""
    first = log(tmp_path / "a.ndjson", [event("click", "u", None, 1, 0)])
    later = log(tmp_path / "b.ndjson", [event("click", "u", None, 9, 4)])
    import_events(tmp_path / "s", [first], now=NOW)
    done = import_events(tmp_path / "s", [later], now=NOW)
    assert held(tmp_path / "s")["position"].to_list() == [1, 5]
    assert "positions begin at 0, as in earlier imports" in done.assumed


def test_users_are_told_by_what_searches_and_events_share(tmp_path: Path) -> None:
    """UBI's queries have a client; its events a user too. By the user they would never meet."""
    rows = [search("c1", "q1"), event("click", "c1", "q1", 5, user_id="person", session_id="s1")]
    done = import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", rows)], now=NOW)
    assert held(tmp_path / "s")["user_id"].to_list() == ["c1", "c1"]
    assert any(said.startswith("users are identified by client ids") for said in done.assumed)


def test_users_where_some_have_no_id(tmp_path: Path) -> None:
    rows = [
        search("c1", "q1"),
        event("click", "c1", "q1", 5),
        {**event("click", "x", "q1", 6), "client_id": None, "session_id": "s1"},
        {**event("click", "x", "q9", 7), "client_id": None},
    ]
    done = import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", rows)], now=NOW)
    users = held(tmp_path / "s").sort("time_us")["user_id"].to_list()
    assert users == ["c1", "c1", "s1", "query:q9"]
    # Without a user: two clients, a session, a query.
    counts = [
        said.rpartition(": ")[2]
        for said in done.assumed
        if "identified by their" in said or "its own user" in said
    ]
    assert sorted(counts) == ["1", "1", "2"]


def test_users_where_searches_and_events_share_only_the_query(tmp_path: Path) -> None:
    rows = [search("c1", "q1"), {**event("click", "x", "q1", 5), "client_id": None}]
    rows[1]["session_id"] = "s1"
    done = import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", rows)], now=NOW)
    assert held(tmp_path / "s")["user_id"].to_list() == ["query:q1", "query:q1"]
    assert any("share query ids only" in said for said in done.assumed)


def test_clocks_that_are_wrong_are_said(tmp_path: Path) -> None:
    rows = [search("u", "q1"), event("click", "u", "q1", -30), event("click", "v", "q1", -30)]
    done = import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", rows)], now=NOW)
    assert any("before the search they belong to: 1, of 1 users" in said for said in done.assumed)


def test_one_damaged_file_does_not_stop_the_others(tmp_path: Path) -> None:
    good = log(tmp_path / "a.ndjson", [search("u", "q1")])
    whole = "".join(json.dumps(event("click", f"u{at}", None, at)) + "\n" for at in range(2000))
    bad = tmp_path / "b.ndjson.gz"
    bad.write_bytes(gzip.compress(whole.encode())[:-2000])
    done = import_events(tmp_path / "s", [good, bad], now=NOW)
    assert (done.files, done.kept, done.dropped) == ([str(good)], 1, {REFUSED: 1})
    assert "damaged or truncated" in done.examples[REFUSED][0]
    # Copied anew it is imported: nothing of the damaged one counts.
    bad.write_bytes(gzip.compress(whole.encode()))
    assert import_events(tmp_path / "s", [good, bad], now=NOW).kept == 2000

    bad.write_bytes(gzip.compress(whole.encode())[:-2000])
    with pytest.raises(InputError, match="damaged or truncated"):
        import_events(tmp_path / "t", [bad], now=NOW)
    with pytest.raises(InputError, match="no events in"):
        read_event_log(tmp_path / "t")
    partial = import_events(tmp_path / "t", [bad], now=NOW, partial=True)
    assert 0 < partial.kept < 2000
    assert partial.dropped == {DAMAGED: 1}
    assert "damaged or truncated" in partial.examples[DAMAGED][0]


def test_folders_and_patterns(tmp_path: Path) -> None:
    below = tmp_path / "logs" / "day"
    below.mkdir(parents=True)
    log(below / "a.ndjson", [search("u", "q1")])
    log(tmp_path / "logs" / "b.ndjson", [search("u", "q2", 60)])
    log(below / ".hidden.ndjson", [search("u", "q3", 120)])
    assert import_events(tmp_path / "s", [tmp_path / "logs"], now=NOW).kept == 2
    assert import_events(tmp_path / "t", [f"{tmp_path}/logs/**/a.*"], now=NOW).kept == 1
    (tmp_path / "none").mkdir()
    for wrong in (tmp_path / "none", f"{tmp_path}/*.csv", tmp_path / "absent"):
        with pytest.raises(InputError):
            import_events(tmp_path / "u", [wrong], now=NOW)


def test_one_import_at_a_time(tmp_path: Path) -> None:
    path = log(tmp_path / "a.ndjson", [search("u", "q1")])
    with importing(tmp_path / "s"), pytest.raises(InputError, match="another import"):
        import_events(tmp_path / "s", [path], now=NOW)
    assert import_events(tmp_path / "s", [path], now=NOW).kept == 1


def test_what_is_asked_wrongly(tmp_path: Path) -> None:
    path = log(tmp_path / "a.ndjson", [search("u", "q1")])
    with pytest.raises(UsageError, match="unknown time zone"):
        import_events(tmp_path / "s", [path], now=NOW, timezone="Berlin")
    with pytest.raises(UsageError, match="must be 0 or 1"):
        import_events(tmp_path / "s", [path], now=NOW, position_base=2)
    import_events(tmp_path / "s", [path], now=NOW)
    with pytest.raises(UsageError, match="this event store is UTC, not Europe"):
        import_events(tmp_path / "s", [path], now=NOW, timezone="Europe/Berlin")


def test_hashing_of_another_polars_still_finds_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = import_events(tmp_path / "s", [log(tmp_path / "a.ndjson", traffic())], now=NOW)
    monkeypatch.setattr(files, "hashing", lambda: 1)
    again = import_events(tmp_path / "s", [log(tmp_path / "b.ndjson", traffic()[::-1])], now=NOW)
    assert again.dropped == {STORED: first.kept}
    manifest = read_manifest(tmp_path / "s")
    assert manifest is not None
    assert manifest.hashing == 0


def test_simulated_is_said_for_ever(tmp_path: Path) -> None:
    one, two = (log(tmp_path / f"{at}.ndjson", [search("u", "q", at)]) for at in range(2))
    import_events(tmp_path / "s", [one], now=NOW, simulated=True)
    done = import_events(tmp_path / "s", [two], now=NOW)
    assert read_event_log(tmp_path / "s").simulated
    assert any("counts as simulated" in said for said in done.assumed)
