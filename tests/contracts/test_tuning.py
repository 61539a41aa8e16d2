"""Tuning: only development queries are searched on, and what is found is tested on others.

Small engines of Python run here; with --deep Cranfield is asked in SQLite and PostgreSQL.
"""

from __future__ import annotations

import importlib
import json
import random
import sqlite3
import sys
from collections import Counter

import polars as pl
import psycopg
import pytest

from karat import formats
from karat.errors import InputError, KaratError, UsageError
from karat.formats.own import held_out
from karat.formats.own.engines import read_engine
from karat.golden.splitting import DEV, parts
from karat.workflows.engines.tuning import tune

ENGINE = """
import random

ASKED = []


def boost(text, weight=1.0, mode="all"):
    # The right document is first if weight is above the query's own bar.
    ASKED.append((text, weight))
    if mode == "broken" or weight > 90:
        raise ValueError("no such mode")
    right = weight > random.Random(text).uniform(0.2, 4)
    return ["right", "other"] if right else ["other", "more", "right"]


def stopped(text, weight=1.0):
    ASKED.append((text, weight))
    if len(ASKED) == stopped.at:
        raise KeyboardInterrupt
    return ["right"] if weight > 2 else ["other", "right"]


def plain(text):
    return ["other", "right"]
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """``engine(function, params)`` is the engine ``e``, and its module."""
    name = f"tuned_{random.randrange(1 << 30)}"
    (tmp_path / f"{name}.py").write_text(ENGINE)
    monkeypatch.syspath_prepend(str(tmp_path))

    def declare(function, params="weight = 1.0"):
        (tmp_path / "karat.toml").write_text(
            f'[engine.e]\nkind = "python"\nfunction = "{name}:{function}"\n'
            f"params = {{ {params} }}\ntimeout = 3600\n"
        )
        return read_engine("e", tmp_path), importlib.import_module(name)

    yield declare
    sys.modules.pop(name, None)


@pytest.fixture
def golden(tmp_path):
    """``golden(count)`` are judgments and queries of a file."""

    def make(count):
        path = tmp_path / "golden.json"
        items = [{"query": f"text {n}", "relevant_docs": ["right"]} for n in range(count)]
        path.write_text(json.dumps(items))
        return formats.read_qrels(path), formats.read_queries(path)

    return make


def test_only_development_queries_are_searched_on(engine, golden):
    config, module = engine("boost")
    qrels, queries = golden(60)
    tuned = tune(config, ["weight=0.1:10:log"], qrels, queries, patience=0, trials=25)
    part = parts(queries.frame["query_id"].to_list())
    dev = {text for query, text in queries.texts().items() if part[query] == DEV}
    asked = Counter(text for text, _ in module.ASKED)
    weights = Counter(weight for text, weight in module.ASKED if text in dev)
    assert set(weights.values()) == {len(dev)}  # each combination once
    assert len(weights) == tuned.trials
    for text, times in asked.items():  # declared and tuned, after the warm-up of both
        assert times == tuned.trials if text in dev else times in (2, 4)
    assert tuned.verdict == "better"
    assert tuned.held_out.difference > 0.1
    assert tuned.held_out.n == 60 - len(dev)
    assert tuned.difference.ci_low == tuned.held_out.ci_low > 0
    assert (tuned.uses, tuned.level, tuned.part_state) == (1, 0.05, "good")
    assert tuned.params == {"weight": tuned.parameters[0].best}
    assert all(query.difference < 0 for query in tuned.losses)


def test_every_use_is_counted_and_a_worn_part_shows_nothing(engine, golden):
    config, _ = engine("boost")
    qrels, queries = golden(60)
    asked = ["weight=1,4"]
    for uses in (1, 2):
        tuned = tune(config, asked, qrels, queries)
        assert (tuned.verdict, tuned.uses, tuned.level) == ("better", uses, 0.05 / uses)
    ledger = held_out.place(qrels.file)
    assert len(held_out.uses(ledger)) == 2
    line = ledger.read_text().splitlines()[0]
    ledger.write_text(f"{line}\n" * 10)
    tuned = tune(config, asked, qrels, queries)
    assert (tuned.verdict, tuned.uses, tuned.part_state) == ("cannot tell", 11, "worn")
    assert "worn after 11 uses" in tuned.reason


def test_the_held_out_part_is_not_used_if_nothing_is_better(engine, golden):
    config, module = engine("boost")
    qrels, queries = golden(30)
    tuned = tune(config, ["weight=0.1:0.15"], qrels, queries, trials=5)
    assert (tuned.verdict, tuned.held_out) == ("not better", None)
    assert not held_out.place(qrels.file).exists()
    assert len({text for text, _ in module.ASKED}) == tuned.dev.n


def test_the_search_stops_when_nothing_is_left_to_gain(engine, golden):
    config, _ = engine("boost")
    qrels, queries = golden(30)
    tuned = tune(config, ["weight=5.0:50"], qrels, queries, trials=90)
    # All are as good as the first: 20 trials after it nothing was gained.
    assert 20 < tuned.trials <= 22
    assert tuned.stopped == "the last 20 gained less than their standard error"


def test_all_combinations_are_asked_if_they_are_few(engine, golden):
    config, _ = engine("boost", 'weight = 1, mode = "all"')
    asked = ["weight=1:4:int", "mode=all,broken"]
    tuned = tune(config, asked, *golden(30), trials=8, retries=0)
    assert (tuned.stopped, tuned.trials, tuned.failed) == ("all combinations", 8, 4)
    assert tuned.params == {"weight": 4, "mode": "all"}
    assert any("4 of 8 failed" in note and "no such mode" in note for note in tuned.notes)


def test_an_interrupted_tuning_goes_on(engine, golden, tmp_path):
    config, module = engine("stopped")
    qrels, queries = golden(30)
    out = str(tmp_path / "best.toml")
    asked = {"patience": 0, "trials": 12, "out": out}
    module.stopped.at = 100
    tuned = tune(config, ["weight=0.1:10"], qrels, queries, **asked)
    assert (tuned.verdict, tuned.stopped, tuned.held_out) == ("cannot tell", "interrupted", None)
    first, module.ASKED[:], module.stopped.at = module.ASKED[:], [], -1
    whole = tune(config, ["weight=0.1:10"], qrels, queries, **asked)
    dev = whole.dev.n
    # The declared parameters are asked again; the combinations that were complete are not.
    again = {weight for _, weight in module.ASKED} & {w for _, w in first[: 100 // dev * dev]}
    assert again <= {1.0, whole.params["weight"]}
    assert not (tmp_path / "best.toml.partial").exists()
    module.ASKED.clear()
    afresh = tune(config, ["weight=0.1:10"], qrels, queries, **asked)
    assert afresh.params == whole.params
    assert afresh.trials == whole.trials


def test_failures_end_it_with_their_reason(engine, golden):
    config, _ = engine("boost", 'weight = 1.0, mode = "broken"')
    with pytest.raises(KaratError, match=r"(?s)query q1 failed in e.*no such mode.*check e") as e:
        tune(config, ["weight=1:2"], *golden(30), retries=0)
    assert e.value.exit_code == 4
    config, _ = engine("boost")
    with pytest.raises(KaratError, match=r"(?s)10 combinations in a row failed.*narrow"):
        tune(config, ["weight=91:95"], *golden(30), retries=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "no parameter to search"),
        (["weight"], "is not NAME=VALUES"),
        (["wieght=1:2"], "no parameter 'wieght'; did you mean weight"),
        (["weight=1"], "neither a range nor a list"),
        (["weight=a,a"], "neither a range nor a list of different values"),
        (["weight=2:1"], "the first number is not below the second"),
        (["weight=0:1:log"], "begins above 0"),
        (["weight=0.5:2:int"], "not whole"),
        (["weight=1:2:logs"], "unknown 'logs'"),
        (["weight=1:2", "weight=3:4"], "given twice"),
    ],
)
def test_a_wrong_parameter_says_how(given, message, engine, golden):
    with pytest.raises(UsageError, match=message):
        tune(engine("boost")[0], given, *golden(30))


def test_a_measure_without_direction_cannot_be_tuned_for(engine, golden):
    with pytest.raises(UsageError, match="cannot be tuned for"):
        tune(engine("boost")[0], ["weight=1:2"], *golden(30), "Judged@10")


def test_a_function_without_the_keyword_is_refused(engine, golden):
    with pytest.raises(UsageError, match=r"plain has no keyword 'weight'"):
        tune(engine("plain")[0], ["weight=1:2"], *golden(30))


def test_a_template_that_does_not_use_the_parameter_is_refused(tmp_path, golden):
    (tmp_path / "karat.toml").write_text(
        '[engine.e]\nkind = "http"\nurl = "http://localhost/{query}"\nparams = { k = 1 }\n'
    )
    with pytest.raises(UsageError, match=r"does not use \{params.k\}"):
        tune(read_engine("e", tmp_path), ["k=1,2"], *golden(30))


def test_the_file_cannot_be_written(engine, golden, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        tune(engine("boost")[0], ["weight=1,2"], *golden(30), out=str(tmp_path / "no" / "x.toml"))


# --- Cranfield ---


@pytest.fixture(scope="module")
def cranfield(field_data, tmp_path_factory):
    """Cranfield in a folder of its own, which gets the ledger; its documents."""
    source, folder = field_data / "cranfield", tmp_path_factory.mktemp("cranfield")
    (folder / "set" / "qrels").mkdir(parents=True)
    for name in ("queries.jsonl", "qrels/test.tsv"):
        (folder / "set" / name).write_bytes((source / name).read_bytes())
    lines = (source / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return folder, [json.loads(line) for line in lines]


def read_cranfield(folder, every=1):
    qrels, queries = formats.read_qrels(folder / "set"), formats.read_queries(folder / "set")
    few = queries.frame["query_id"].to_list()[::every]
    file = qrels.file
    qrels = qrels.only(few)
    qrels.file = file
    kept = pl.col("query_id").is_in(few)
    return qrels, type(queries)(queries.frame.filter(kept), queries.source)


@pytest.mark.deep
def test_fts5_weights_of_cranfield(cranfield, tmp_path):
    folder, corpus = cranfield
    with sqlite3.connect(tmp_path / "docs.db") as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, text)")
        rows = [(d["_id"], d["title"], d["text"]) for d in corpus]
        made.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
    (tmp_path / "karat.toml").write_text(
        '[engine.e]\nkind = "sqlite"\nurl = "docs.db"\ndepth = 20\nparams = { title = 0.1 }\n'
        'template = """SELECT id, -bm25(docs, 0, {params.title}, 1) AS score FROM docs WHERE docs '
        'MATCH {words} ORDER BY score DESC, id LIMIT {size}"""\n'
    )
    tuned = tune(
        read_engine("e", tmp_path), ["title=0.1:10:log"], *read_cranfield(folder), trials=40
    )
    print(tuned.to_dict() | {"losses": None, "latency": None})
    assert tuned.verdict == "better"
    assert tuned.held_out.n == 110


RRF = """
WITH words AS (
  SELECT id, row_number() OVER (ORDER BY ts_rank_cd(terms, q, 1) DESC, id) AS r
  FROM docs, to_tsquery('english', replace(
    plainto_tsquery('english', {query})::text, '&', '|')) q
  WHERE terms @@ q ORDER BY r LIMIT 100
), near AS (
  SELECT id, row_number() OVER (ORDER BY place <=> {vector}::vector, id) AS r
  FROM docs ORDER BY r LIMIT 100
)
SELECT id, sum(w / ({params.k} + r)) AS score FROM (
  SELECT id, r, 1 - {params.fuse}::float8 AS w FROM words
  UNION ALL SELECT id, r, {params.fuse}::float8 FROM near
) both_lists GROUP BY id ORDER BY score DESC, id LIMIT {size}
"""
ENCODER = """
import pickle
from pathlib import Path

counted, reduced = pickle.loads(Path(__file__).with_name("lsa.pickle").read_bytes())


def embed(text):
    return reduced.transform(counted.transform([text]))[0].tolist()
"""


@pytest.mark.deep
def test_fusion_weights_of_cranfield_in_postgresql(cranfield, tmp_path, postgres):
    import pickle

    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    folder, corpus = cranfield
    texts = [f"{d['title']} {d['text']}" for d in corpus]
    counted = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
    reduced = TruncatedSVD(100, random_state=0).fit(counted.transform(texts))
    places = reduced.transform(counted.transform(texts))
    (tmp_path / "lsa.pickle").write_bytes(pickle.dumps((counted, reduced)))
    (tmp_path / "lsa_encoder.py").write_text(ENCODER)
    (tmp_path / "rrf.sql").write_text(RRF)
    url = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as c:
        c.execute("CREATE EXTENSION IF NOT EXISTS vector")
        c.execute("DROP TABLE IF EXISTS docs")
        c.execute("CREATE TABLE docs (id text, terms tsvector, place vector(100))")
        with c.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO docs VALUES (%s, to_tsvector('english', %s), %s::vector)",
                [
                    (d["_id"], text, str(place.tolist()))
                    for d, text, place in zip(corpus, texts, places, strict=True)
                    if place.any()
                ],
            )
    (tmp_path / "karat.toml").write_text(
        f'[engine.e]\nkind = "postgres"\nurl = "{url}"\ntemplate = "rrf.sql"\ndepth = 20\n'
        'embed = "lsa_encoder:embed"\nparams = { k = 60, fuse = 0.0 }\n'
    )
    tuned = tune(
        read_engine("e", tmp_path),
        ["fuse=0:1", "k=1:200:int:log"],
        *read_cranfield(folder),
        trials=30,
    )
    print(tuned.to_dict() | {"losses": None, "latency": None})
    assert tuned.verdict == "better"


@pytest.mark.deep
def test_overfitting_on_thirty_queries_is_caught(cranfield, tmp_path, monkeypatch):
    """500 orders by chance of the ten documents that SQLite ranks first."""
    folder, corpus = cranfield
    (tmp_path / "by_chance.py").write_text(
        "import random, re, sqlite3\n"
        "from functools import cache\n"
        f"base = sqlite3.connect({str(tmp_path / 'docs.db')!r}, check_same_thread=False)\n"
        "@cache\n"
        "def top(text):\n"
        "    words = ' OR '.join(f'\"{w}\"' for w in re.findall(r'\\w+', text))\n"
        "    sql = 'SELECT id FROM docs WHERE docs MATCH ? ORDER BY bm25(docs), id LIMIT 10'\n"
        "    return tuple(i for i, in base.execute(sql, [words]))\n"
        "def search(text, seed=0):\n"
        "    found = list(top(text))\n"
        "    random.Random(f'{seed} {text}').shuffle(found)\n"
        "    return found\n"
    )
    with sqlite3.connect(tmp_path / "docs.db") as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, text)")
        rows = [(d["_id"], d["title"], d["text"]) for d in corpus]
        made.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
    (tmp_path / "karat.toml").write_text(
        '[engine.e]\nkind = "python"\nfunction = "by_chance:search"\nparams = { seed = 0 }\n'
    )
    qrels, queries = read_cranfield(folder, every=8)
    qrels.file = str(folder / "overfit")  # a ledger of its own
    tuned = tune(
        read_engine("e", tmp_path),
        ["seed=0:1000000:int"],
        qrels,
        queries,
        trials=500,
        patience=0,
    )
    print(tuned.to_dict() | {"losses": None, "latency": None})
    assert len(queries) <= 30
    assert tuned.dev.difference > 0.08
    assert tuned.held_out.ci_low < 0 < tuned.held_out.ci_high
    assert (tuned.verdict, tuned.reason[:30]) == ("not better", "not better on held-out queries")
