"""karat online queries and karat online against, as typed."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from karat.formats.events.ubi import write_events
from karat.online.rules import DAY, MINUTE, SECOND
from karat.workflows.online.import_events import import_events

# Of each query: people, how many of them found nothing, how many clicked.
LOG = {"cms": (9, 9, 0), "Pump": (12, 0, 9), '=pipe, 3"': (10, 0, 2), "valve": (8, 0, 8)}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An event store with the log, to copy."""
    folder = tmp_path_factory.mktemp("imported")
    rows = []
    for i, (query, (people, zeros, clicked)) in enumerate(LOG.items()):
        for n in range(people):
            user, time = f"{i}-{n}", 20_700 * DAY + (100 * i + n) * MINUTE
            found = 0 if n < zeros else 10
            rows.append({
                "user_id": user, "time_us": time, "kind": "search", "query_id": user,
                "query": query, "returned": found, "total_hits": found, "status": "ok",
                "doc_id": None, "position": None, "arm": "ab"[n % 2],
            })  # fmt: skip
            if n >= zeros and n < clicked:
                rows.append({
                    "user_id": user, "time_us": time + SECOND, "kind": "click", "query_id": user,
                    "query": None, "returned": None, "total_hits": None, "status": None,
                    "doc_id": "d", "position": 2, "arm": "ab"[n % 2],
                })  # fmt: skip
    write_events(folder / "log.ndjson", pl.DataFrame(rows, infer_schema_length=None))
    import_events(folder / "events", [folder / "log.ndjson"], now=4_000_000_000_000_000)
    return folder / "events"


@pytest.fixture
def store(typed, imported: Path, tmp_path: Path) -> None:
    """A workspace in the current folder with the log in its event store."""
    typed("init .")
    shutil.copytree(imported, tmp_path / "events", dirs_exist_ok=True)


def test_the_table(typed, store) -> None:
    done = typed("online queries")
    # 9 of cms, 3 of Pump and 8 of =pipe, of 39.
    assert "20 of 39 searches failed (51 %), 2026-09-04 to 2026-09-04" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    order = [line[0] for line in lines if line and line[0] in {"cms", "Pump", "=pipe,", "valve"}]
    assert order[:4] == ["cms", "=pipe,", "Pump", "valve"]
    assert "zero results" in done.out
    assert "nobody clicks" in done.out
    assert "ordered by lost searches" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.deep  # tests/net asks for all forms
def test_json_csv_and_markdown_say_the_same(typed, store) -> None:
    found = json.loads(typed("online queries -f json").out)
    assert (found["searches"], found["failed"], found["sort"]) == (39, 20, "lost")
    rows = list(csv.DictReader(io.StringIO(typed("online queries -f csv").out)))
    assert [row["query"] for row in rows] == ["cms", "'=pipe, 3\"", "pump", "valve"]
    assert [float(row["lost"]) for row in rows] == [row["lost"] for row in found["queries"]]
    assert rows[0]["failed_zero_results"] == "9"
    markdown = typed("online queries -f md --by arm").out
    assert "| Query | arm | Lost | Searches |" in markdown
    assert "| arm=a | 4 |" in markdown
    by_arm = list(csv.DictReader(io.StringIO(typed("online queries -f csv --by arm").out)))
    assert {row["slice_arm"] for row in by_arm} == {"a", "b"}


def test_the_export_is_read_by_golden_choose(typed, store, tmp_path: Path) -> None:
    typed("online queries --export worst.csv")
    done = typed("golden choose worst.csv --size 4 -f json")
    assert json.loads(done.out)["added"] == 4
    typed("golden export out")
    texts = [json.loads(line) for line in (tmp_path / "out/queries.jsonl").read_text().splitlines()]
    counts = {row["text"]: row["metadata"]["count"] for row in texts}
    assert counts == {"cms": 9, "Pump": 12, '=pipe, 3"': 10, "valve": 8}
    assert typed("online queries --export worst.pdf", code=2).err.startswith(
        "karat: cannot tell the format"
    )


def test_into_the_golden_set(typed, store, tmp_path: Path) -> None:
    done = typed("online queries --limit 2 --to-golden")
    assert "karat: 2 new queries in the golden set" in done.err
    assert "karat: 0 new queries" in typed("online queries --limit 2 --to-golden").err
    typed("golden export out")
    texts = [json.loads(line) for line in (tmp_path / "out/queries.jsonl").read_text().splitlines()]
    assert {row["text"]: row["metadata"]["origin"] for row in texts} == {
        "cms": "clicks",
        '=pipe, 3"': "clicks",
    }


def test_mistakes(typed, store, tmp_path: Path) -> None:
    assert "did you mean zero" in typed("online queries --sort zer", code=2).err
    assert "class" in typed("online queries --by class", code=2).err
    assert "no events in" in typed("online queries --events nowhere", code=2).err
    typed("online queries --min-searches 0", code=2)
    assert "did you mean arm" in typed("online queries --only arms=a", code=2).err
    assert "its arms are a, b" in typed("online queries --only arm=c", code=2).err
    assert "no value given" in typed("online queries --only arm", code=2).err
    assert "duplicate dimension" in typed("online queries --only arm=a --only ARM=b", code=2).err
    assert "is not a valid day" in typed("online queries --only day=noon", code=2).err


def test_only_one_arm(typed, store) -> None:
    found = json.loads(typed("online queries -f json --only arm=a").out)
    # People with even numbers: 5 of cms, 6 of Pump, 5 of =pipe and 4 of valve.
    assert found["searches"] == 20
    none = json.loads(typed("online queries -f json --only arm=").out)
    assert (none["searches"], none["queries"]) == (0, [])


@pytest.mark.deep  # tests/net asks it in all forms
def test_against(typed, store, tmp_path: Path) -> None:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    names = list(LOG)
    queries = [
        {"_id": f"q{i}", "text": text.upper(), "metadata": {"class": "xy"[i % 2]}}
        for i, text in enumerate([*names, "never"])
    ]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(q)}\n" for q in queries))
    qrels = "".join(f"q{i}\td\t1\n" for i in range(5))
    (folder / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
    (tmp_path / "run.trec").write_text("".join(f"q{i} Q0 d 1 1.0 bm25\n" for i in range(5)))
    done = typed("online against beir run.trec --min-searches 5")
    assert "4 queries judged and searched for" in done.out
    assert "1 judged query not searched for: not included" in done.out
    found = json.loads(typed("online against beir run.trec -f json -m RR").out)
    assert (found["by"], found["measures"], found["judged_only"]) == ("class", ["RR"], 1)
    rows = list(csv.DictReader(io.StringIO(typed("online against beir run.trec -f csv").out)))
    assert {row["query_id"]: float(row["CTR"] or "nan") for row in rows if row["CTR"]} == {
        "q1": 0.75,
        "q2": 0.2,
        "q3": 1.0,
    }
    assert "| class | Queries |" in typed("online against beir run.trec -f md").out
    both = "arms a and b are counted together, so the run is compared with both"
    assert any(note.startswith(both) for note in found["notes"])
    arm = json.loads(typed("online against beir run.trec -f json --only arm=b").out)
    # People with odd numbers: 4 of cms, 6 of Pump, 5 of =pipe and 4 of valve.
    assert sorted(row["searches"] for row in arm["queries"]) == [4, 4, 5, 6]
    assert not any(note.startswith(both) for note in arm["notes"])
    odd = typed("online against beir run.trec --only class=x", code=2)
    assert "judged queries have classes of their own" in odd.err
    # Judgments alone know no texts: the golden set's queries have them, or --queries.
    (tmp_path / "qrels.trec").write_text("".join(f"q{i} 0 d 1\n" for i in range(5)))
    refused = typed("online against qrels.trec run.trec", code=2)
    assert "queries without texts cannot be found in a log" in refused.err
    typed("golden import beir")
    assert "4 queries judged" in typed("online against qrels.trec run.trec").out
    given = typed("online against qrels.trec run.trec --queries beir/queries.jsonl")
    assert "4 queries judged" in given.out
