"""``karat golden``: from a query log to an edition that is evaluated with, as somebody types it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.choosing import deep_but

Typed = Callable[..., Any]  # conftest.py

LOG = {"read a file": 60, "sort a list": 30, "parse json": 10}
DOCUMENTS = [f"d{n}" for n in range(6)]


def rankings(folder: Path, typed: Typed) -> dict[str, str]:
    """Two runs over the queries of the golden set, and the ids of these by text."""
    typed("golden export asked -w shop")
    lines = (folder / "asked/queries.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    ids = {row["text"]: row["_id"] for row in rows}
    for name, docs in (("up", DOCUMENTS[:4]), ("down", DOCUMENTS[:1:-1])):
        lines = [
            f"{query} Q0 {doc} {rank} {9 - rank} {name}"
            for query in ids.values()
            for rank, doc in enumerate(docs, 1)
        ]
        (folder / f"{name}.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ids


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the files of ``ids`` are kept, once they are made."""
    return tmp_path_factory.mktemp("ids") / "made"


@pytest.fixture
def ids(typed: Typed, tmp_path: Path, made: Path) -> dict[str, str]:
    """A workspace with three queries of a log, six documents, and a pool of two runs."""
    if made.exists():
        shutil.copytree(made, tmp_path, dirs_exist_ok=True)
        found: dict[str, str] = json.loads(made.with_suffix(".json").read_text())
        return found
    typed("init shop")
    rows = "".join(f"{text},{count}\n" for text, count in LOG.items())
    (tmp_path / "log.csv").write_text(f"query,count\n{rows}", encoding="utf-8")
    typed("golden choose log.csv --size 3 -w shop")
    texts = ({"_id": d, "title": f"Title {d}", "text": f"Text of {d}."} for d in DOCUMENTS)
    lines = "".join(json.dumps(row) + "\n" for row in texts)
    (tmp_path / "corpus.jsonl").write_text(lines, encoding="utf-8")
    assert "6 new documents" in typed("golden import corpus.jsonl -w shop").out
    found = rankings(tmp_path, typed)
    done = typed("golden pool up.trec down.trec -k 2 -w shop")
    # Two runs, two documents of each, none in common: 4 pairs a query, judged by 2.
    assert "12 pairs of 3 queries chosen, 12 of them new; the queue waits for 24" in done.out
    made.with_suffix(".json").write_text(json.dumps(found))
    shutil.copytree(tmp_path, made)
    return found


def test_from_a_log_to_an_edition(typed: Typed, ids: dict[str, str], tmp_path: Path) -> None:
    typed("judge --terminal --rater zoe -w shop", given="3\n" * 20)
    typed("judge --terminal --rater ben -w shop", given="3\n0\n3\n3\n" * 5)
    told = json.loads(typed("golden agreement -w shop --format json").out)
    assert told["raters"] == ["zoe", "ben"]
    assert (told["pairs"], told["queries"]) == (12, 3)
    equal = next(figure for figure in told["figures"] if figure["name"] == "share equal")
    assert equal["value"] == 0.75  # ben gives 0 to every fourth of 12, zoe never
    listed = json.loads(typed("golden disagreements -w shop --format json").out)
    assert (len(listed["frame"]), listed["queued"]) == (3, 0)
    done = typed("golden disagreements --queue -w shop")
    assert "karat judge --terminal --adjudicate" in done.out
    assert "3 disagreements to settle" in typed("golden status -w shop").out
    seen = typed("judge --terminal --adjudicate --rater eve -w shop", given="e as sold\n1\n1\n1\n")
    assert "no disagreements to settle" in seen.out.splitlines()[-1]
    assert seen.out.count("rater: 0") == seen.out.count("rater: 3") == 3
    assert "zoe" not in seen.out
    assert "ben" not in seen.out

    frozen = typed("golden freeze 2026-03 -w shop")
    assert "2026-03: 3 queries, 12 grades" in frozen.out
    assert "karat: warning: κ" in frozen.err
    policy = tmp_path / "shop/karat.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("refuse = false", "refuse = true"), encoding="utf-8")
    failed = typed("golden freeze strict -w shop", code=1)  # a verdict, and not wrong usage
    assert "karat: fail: κ" in failed.err
    told = typed("golden freeze strict -w shop --format json", code=1).out
    assert json.loads(told)["verdict"] == "fail"
    policy.write_text(text, encoding="utf-8")
    again = typed("golden freeze 2026-03 -w shop", code=2)
    assert "fix: " in again.err
    assert "2026-03" in typed("golden editions -w shop").out
    typed("judge --terminal --adjudicate --rater eve -w shop", given="z\n2\n")
    changed = json.loads(typed("golden diff 2026-03 now -w shop --format json").out)
    assert [(row["old"], row["new"], row["pairs"]) for row in changed["moves"]] == [(1, 2, 1)]
    assert changed["about"] == {}
    covered = json.loads(
        typed("golden coverage up.trec down.trec -k 4 -w shop --edition 2026-03 -f json").out
    )
    # up returns d0 to d3, down d5 to d2; the pool has d0, d1, d4 and d5.
    assert {row["run"]: row["judged"] for row in covered["runs"]} == {"up": 0.5, "down": 0.5}

    typed("golden export out --edition 2026-03 -w shop")
    rated = (tmp_path / "out/qrels/test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert sorted(line.split("\t")[2] for line in rated) == ["1"] * 3 + ["3"] * 9
    scores = json.loads(typed("evaluate out up.trec -m P@2 -f json").out)
    assert scores["results"][0]["value"] == 1


def test_weights_flow_into_the_mean(typed: Typed, ids: dict[str, str], tmp_path: Path) -> None:
    first = {"read a file": 3, "sort a list": 0, "parse json": 3}
    rows = [f"{ids[text]},d0,{grade}\n{ids[text]},d1,1\n" for text, grade in first.items()]
    (tmp_path / "said.csv").write_text(f"query_id,doc_id,grade\n{''.join(rows)}", encoding="utf-8")
    typed("golden import said.csv --rater ann -w shop")
    typed("golden export out -w shop")
    found = json.loads(typed("evaluate out up.trec -m P@1 -f json").out)["results"][0]
    # All queries of the log were drawn, so each weighs as its searches, and `up` begins with d0:
    # (60 x 1 + 30 x 0 + 10 x 1) / 100. Without weights it were 2/3.
    assert found["value"] == pytest.approx(0.7, abs=1e-12)


def test_what_no_log_counted_has_no_part_in_means(
    typed: Typed, ids: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "hard.txt").write_text("never asked\n", encoding="utf-8")
    typed("golden choose log.csv --size 3 --hard hard.txt -w shop")
    rows = [*(f"{text},d0,1\n" for text in LOG), "never asked,d0,0\nnever asked,d1,1\n"]
    rows.append("from a file,d1,1\n")
    (tmp_path / "said.csv").write_text(f"query,doc_id,grade\n{''.join(rows)}", encoding="utf-8")
    assert "1 new query, 6 new judgments" in typed("golden import said.csv -w shop").out
    told = typed("golden export out -w shop")
    assert "weight 0 for 2 queries that no log counted" in told.err
    found = json.loads(typed("evaluate out up.trec -c -m P@1 -f json").out)["results"][0]
    # 100 searches found; two queries that no log counted have weight 0, and count in nothing over
    # all.
    assert (found["n"], found["value"]) == (3, 1.0)


@pytest.mark.deep  # tests/net asks for both
def test_every_table_is_json_too_and_fits(typed: Typed, ids: dict[str, str]) -> None:
    typed(
        "judge --terminal --rater an.exceptionally.long.name@example.com -w shop", given="2\n" * 6
    )
    typed("judge --terminal --rater ben -w shop", given="3\n" * 6)
    typed("golden freeze one -w shop")
    for command in (
        "status",
        "choose log.csv --size 3",
        "pool up.trec -k 3",
        "agreement",
        "agreement --by band",
        "disagreements",
        "editions",
        "diff one",
        "diff one now --by band",
        "freeze {}",
        "coverage up.trec",
        "stale",
    ):
        shown = typed(f"golden {command.format('two')} -w shop").out
        whole = "golden in sqlite" in shown or "SHA-256" in shown
        assert whole or max(map(len, shown.splitlines())) <= 80, command
        told = typed(f"golden {command.format('three')} -w shop --format json").out
        assert json.loads(told) is not None
    assert json.loads(typed("golden plan --format json").out)["needed"]["queries"] > 0


def test_status_sets_its_table_apart(typed: Typed, ids: dict[str, str]) -> None:
    shown = typed("golden status -w shop").out
    assert "\n\n3 queries, made of\n" in shown
    assert shown.count("\n\n\n") == 0


def test_a_difference_of_nothing_is_no_plan(typed: Typed) -> None:
    assert "a difference of 0" in typed("golden plan --difference 0", code=2).err


def test_most_of_a_sample_goes_only_if_it_is_meant_to(
    typed: Typed, ids: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "other.csv").write_text("query;count\nparse json;1.000\na;2\n", encoding="utf-8")
    done = typed("golden choose other.csv --size 2 -w shop", code=2)
    assert "2 of the 3 queries drawn before would be dropped, 0 of them judged" in done.err
    assert "replace the sample" in done.err
    done = typed("golden choose other.csv --size 2 --replace -w shop")
    assert "1,002 searches of 2 queries" in done.out
    assert "1.000 is 1,000" in " ".join(done.out.split())


def test_a_log_of_strangers_is_not_printed(typed: Typed, ids: dict[str, str]) -> None:
    told = json.loads(typed("golden choose log.csv --size 3 -w shop --format json").out)
    assert told["log"]["searches"] == 100
    assert "frame" not in told["log"]


@pytest.mark.parametrize(
    ("line", "says"),
    deep_but(
        {
            "golden pool",
            "golden import absent.csv",
            "golden export x --format nope",
            "golden freeze one",
            "golden choose log.csv --band head",
        },
        [
            ("golden pool absent.trec", "absent.trec"),
            ("golden pool", "RUN"),
            ("golden import up.trec", "pool the pairs that it returns"),
            ("golden import absent.csv", "absent.csv"),
            ("golden import log.csv --format nope", "nope"),
            ("golden export x --format nope", "formats: "),
            ("golden export x --edition nope", "nope"),
            ("golden diff nope", "nope"),
            ("golden freeze now", "such as 2026-03"),
            ("golden freeze one", "nothing is judged yet"),
            ("golden agreement --by nope", "one of "),
            ("golden choose log.csv --band head", "such as head=0.33"),
            ("golden choose log.csv --quota band=head", "such as class=name:10"),
            ("golden choose log.csv --size 0", "0"),
            ("golden coverage up.trec -k 0", "0"),
        ],
    ),
)
def test_mistakes(line: str, says: str, typed: Typed, ids: dict[str, str]) -> None:
    assert says in typed(f"{line} -w shop", code=2).err


def test_what_raters_contradict_is_told(typed: Typed, ids: dict[str, str], tmp_path: Path) -> None:
    said = "query_id,doc_id,grade{}\n{},d0,{}\n"
    query = ids["parse json"]
    (tmp_path / "nobody.csv").write_text(said.format("", query, 0), encoding="utf-8")
    (tmp_path / "ann.csv").write_text(said.format("", query, 3), encoding="utf-8")
    typed("golden import nobody.csv -w shop")
    typed("golden import ann.csv --rater ann -w shop")
    assert "1 imported grade contradicted by raters" in typed("golden status -w shop").out
    assert "1 imported grade contradicted by raters" in typed("golden disagreements -w shop").out
    (row,) = json.loads(typed("golden disagreements -f json -w shop").out)["frame"]
    assert (row["between"], row["imported"], row["grades"]) == ("import", 0, [3])
    assert json.loads(typed("golden disagreements --queue -f json -w shop").out)["queued"] == 0
    line = "golden disagreements --queue-imported -f json -w shop"
    assert json.loads(typed(line).out)["queued"] == 1
    assert "contradicted" not in typed("golden status -w shop").out  # somebody is asked
    done = typed("golden freeze one -f json -w shop")
    made = json.loads(done.out)
    assert (made["name"], made["grades"], made["contradicted"]) == ("one", 1, 1)
    assert made["agreed"]["verdict"] == "warn"
    assert "1 imported grade contradicted by raters, whose grades count" in done.err
