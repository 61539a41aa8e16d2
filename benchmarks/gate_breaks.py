"""What a gate with the starter policy stops: a search broken, or changed harmlessly, in many ways.

    python benchmarks/gate_breaks.py [CRANFIELD]

CRANFIELD holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` (BEIR's form); without
it, ``../shared/data/cranfield`` beside the project. The search is the demo's BM25. Its answers are
written to a run file and broken there, and the function is broken live and asked by
``karat.benchmark``. Each candidate goes through ``gate`` as a file, with the policy that
``karat gate --init QRELS RUN`` writes for the baseline. Prints a Markdown table.

Times in files are made up, log-normal. Live ones are real; the search then waits about 60 ms for
each query, so that what else the machine does is small beside it, and 8 queries are asked at once.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import polars as pl

import karat
from karat.demo import bm25
from karat.errors import KaratError
from karat.tables.gate import Gate
from karat.workflows.starter_policy import start_policy

DEPTH = 100
CRANFIELD = Path(__file__).resolve().parents[2] / "shared/data/cranfield"
WITHIN = "the drop is within the 5 % allowed"
Ranking = list[tuple[str, Any]]
Search = Callable[[str], Any]


@dataclass(frozen=True)
class World:
    """A search, and what is known of it.

    Attributes:
        texts: Query id to what was typed.
        grades: Query id to document to grade.
        documents: Document id to title and text.
        over: The search over some of the documents: text to a ranking.
        pause_ms: How long a live query takes beside its work; median.
    """

    texts: Mapping[str, str]
    grades: Mapping[str, Mapping[str, float]]
    documents: Mapping[str, tuple[str, str]]
    over: Callable[[Mapping[str, tuple[str, str]]], Search]
    pause_ms: float = 60.0


@dataclass(frozen=True)
class Answer:
    """The answer to a query as it is written to a run file."""

    docs: Ranking
    ms: float | None
    state: str = "ok"
    repeated: int = 0


Run = dict[str, Answer]
InFile = Callable[[Run, World, Random], Run | bytes]
Live = Callable[[Search, World, Random], Search]


@dataclass(frozen=True)
class Break:
    """A way of breaking a search.

    Attributes:
        name: What is done.
        how: Does it, to a run or to a search.
        live: Whether it is done to a search.
        harmless: Whether no user would be worse off, so that a gate should let it pass.
        why: Why it passes although users are worse off, if it does.
    """

    name: str
    how: Any
    live: bool
    harmless: bool = False
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of a broken search.

    Attributes:
        broken: How it was broken.
        code: Exit code of ``karat gate``: 0 let pass, 1 failed, 2 refused, 3 not sure or unhealthy.
        verdict: The verdict, or ``refused``.
        reason: The first reason.
        drops: Relative drop of nDCG@10 and AP; None where there is none.
    """

    broken: Break
    code: int
    verdict: str
    reason: str
    drops: tuple[float | None, ...] = field(default=(None, None))


# ── in run files ─────────────────────────────────────────────────────────────────────────────────


def each(change: Callable[[Ranking, Random], Ranking]) -> InFile:
    """Every ranking changed by itself."""

    def how(run: Run, _world: World, rng: Random) -> Run:
        return {q: replace(a, docs=change(list(a.docs), rng)) for q, a in run.items()}

    return how


def scored(docs: list[str]) -> Ranking:
    """Documents best first, with scores that say so."""
    return [(doc, float(len(docs) - place)) for place, doc in enumerate(docs)]


def ids(spell: Callable[[str], str], share: float = 1.0) -> InFile:
    """Document ids spelt another way, in all documents or some."""

    def of(doc: str) -> str:
        number = int(hashlib.sha256(doc.encode()).hexdigest(), 16) % 1000
        return spell(doc) if number < 1000 * share else doc

    return each(lambda docs, _rng: [(of(doc), score) for doc, score in docs])


def for_some(
    share: float, change: Callable[[Answer, Random], Answer], *, shortest: bool = False
) -> InFile:
    """A share of the answers changed: of any queries, or of those with the shortest texts."""

    def how(run: Run, world: World, rng: Random) -> Run:
        order = sorted(run, key=lambda q: (len(world.texts[q].split()), q))
        if not shortest:
            rng.shuffle(order)
        chosen = set(order[: math.ceil(share * len(order))])
        return {q: change(a, rng) if q in chosen else a for q, a in run.items()}

    return how


def nothing_relevant(run: Run, world: World, rng: Random, share: float) -> Run:
    """Of some queries all relevant documents are lost."""
    chosen = set(rng.sample(sorted(run), math.ceil(share * len(run))))
    kept = {
        q: [pair for pair in a.docs if world.grades.get(q, {}).get(pair[0], 0) <= 0]
        for q, a in run.items()
    }
    return {q: replace(a, docs=kept[q]) if q in chosen else a for q, a in run.items()}


def without(share: float) -> InFile:
    """The run lacks a share of the queries."""

    def how(run: Run, _world: World, rng: Random) -> Run:
        lost = set(rng.sample(sorted(run), math.ceil(share * len(run))))
        return {q: a for q, a in run.items() if q not in lost}

    return how


def slower(factor: float, share: float = 1.0) -> InFile:
    """All answers slower, or a share of them."""
    return for_some(share, lambda a, _rng: replace(a, ms=factor * (a.ms or 0)))


def shifted(run: Run, _world: World, _rng: Random) -> Run:
    """Each query has the answer of the next one."""
    order = list(run)
    return {q: replace(run[order[place - 1]], ms=run[q].ms) for place, q in enumerate(order)}


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """The lines of a run file."""
    for query, answer in run.items():
        told: dict[str, Any] = {"query_id": query}
        if answer.ms is not None:
            told["latency_us"] = round(1000 * answer.ms)
        if answer.repeated:
            told["repeated"] = answer.repeated
        if answer.state != "ok" or not answer.docs:
            yield told | {"state": "empty" if answer.state == "ok" else answer.state}
        for doc, score in answer.docs if answer.state == "ok" else ():
            yield told | {"doc_id": doc, "score": score}


def written(run: Run) -> bytes:
    """A run file."""
    return "".join(f"{json.dumps(row)}\n" for row in rows(run)).encode()


def swapped(docs: Ranking, _rng: Random) -> Ranking:
    """The first two documents change places."""
    return scored([doc for doc, _ in [*docs[1:2], *docs[:1], *docs[2:]]])


def shuffled(first: int | None) -> InFile:
    """The first documents, or all, in any order."""

    def change(docs: Ranking, rng: Random) -> Ranking:
        top = [doc for doc, _ in docs[:first]]
        rng.shuffle(top)
        return scored([*top, *(doc for doc, _ in docs[len(top) :])])

    return each(change)


def adverts(count: int) -> InFile:
    """Documents that nobody looked for come first."""
    return each(lambda docs, _rng: scored([f"ad/{n}" for n in range(count)] + [d for d, _ in docs]))


def in_file() -> Iterator[Break]:
    """Run files, broken and changed."""

    def of(name: str, how: InFile, *, harmless: bool = False, why: str = "") -> Break:
        return Break(name, how, live=False, harmless=harmless, why=why)

    small = "so few queries move the mean by less than the 5 % allowed"
    first = "within the 5 % allowed: 96 of the 225 first hits are judged not relevant here"
    yield of("scores change sign", each(lambda d, _r: [(doc, -score) for doc, score in d]))
    yield of("whole ranking shuffled", shuffled(None))
    yield of("first ten shuffled", shuffled(10))
    yield of("first two swapped", each(swapped), why=first)
    yield of("first hit lost", each(lambda d, _r: d[1:]), why=first)
    yield of("every second document lost", each(lambda d, _r: d[::2]))
    yield of("cut to 5 documents", each(lambda d, _r: d[:5]))
    yield of("cut to 10 documents", each(lambda d, _r: d[:10]))
    yield of("cut to 50 documents", each(lambda d, _r: d[:50]))
    yield of(
        "the same ten documents for all",
        lambda run, _w, _r: {
            q: replace(a, docs=scored([d for d, _ in next(iter(run.values())).docs[:10]]))
            for q, a in run.items()
        },
    )
    yield of("answers of the next query", shifted)
    yield of(
        "random documents",
        lambda run, w, rng: {
            q: replace(
                a, docs=scored(rng.sample(sorted(w.documents), min(DEPTH, len(w.documents))))
            )
            for q, a in run.items()
        },
    )
    yield of("an advert on top", adverts(1))
    yield of("three adverts on top", adverts(3))
    yield of(
        "scores rounded to whole numbers, ties by id",
        each(lambda d, _r: [(doc, float(round(score))) for doc, score in d]),
    )
    yield of("all scores equal", each(lambda d, _r: [(doc, 1.0) for doc, _ in d]))
    yield of(
        "rank written as score",
        each(lambda d, _r: [(doc, float(rank)) for rank, (doc, _) in enumerate(d, 1)]),
    )
    yield of(
        "half of the documents, by id",
        each(
            lambda d, _r: [
                pair for pair in d if int(hashlib.md5(pair[0].encode()).hexdigest(), 16) % 2
            ]
        ),
    )
    for percent in (20, 10, 5, 2):
        yield of(
            f"{percent} % of the queries find nothing relevant",
            (lambda run, w, rng, share=percent / 100: nothing_relevant(run, w, rng, share)),
            why=small,
        )
    yield of(
        "the shortest tenth of the queries reversed",
        for_some(
            0.1, lambda a, _r: replace(a, docs=scored([d for d, _ in a.docs[::-1]])), shortest=True
        ),
        why=small,
    )
    yield of(
        "the shortest quarter of the queries reversed",
        for_some(
            0.25, lambda a, _r: replace(a, docs=scored([d for d, _ in a.docs[::-1]])), shortest=True
        ),
    )
    yield of(
        "one query reversed",
        for_some(0.001, lambda a, _r: replace(a, docs=scored([d for d, _ in a.docs[::-1]]))),
        why=small,
    )
    for percent in (50, 10, 3):
        yield of(
            f"{percent} % of the queries not in the file",
            without(percent / 100),
            why=("5 % may be lacking, as formats without answers leave out what is empty"),
        )
    for percent in (16, 6, 3):
        yield of(
            f"{percent} % of the queries newly empty",
            for_some(percent / 100, lambda a, _r: replace(a, docs=[])),
            why="5 % may be empty",
        )
    yield of(
        "every document twice, noticed by the benchmark",
        lambda run, _w, _r: {q: replace(a, repeated=len(a.docs)) for q, a in run.items()},
    )
    yield of(
        "documents twice in one answer of 225",
        for_some(0.001, lambda a, _r: replace(a, repeated=1)),
    )
    yield of("every document twice in the file", each(lambda d, _r: [*d, *d]))
    yield of("scores that are NaN", each(lambda d, _r: [(doc, math.nan) for doc, _ in d]))
    yield of("an empty file", lambda _run, _w, _r: b"")
    yield of("the file ends within a line", lambda run, _w, _r: written(run)[:-20])
    yield of(
        "the file ends after half of its bytes",
        lambda run, _w, _r: written(run)[: len(written(run)) // 2].rpartition(b"\n")[0] + b"\n",
    )
    yield of(
        "queries got no answer, 1 in 50",
        for_some(0.02, lambda a, _r: replace(a, docs=[], state="failed")),
    )
    yield from spelt(of)
    yield from timed(of)
    for name, how in HARMLESS.items():
        yield of(name, how, harmless=True)


def spelt(of: Callable[..., Break]) -> Iterator[Break]:
    """Ids of another world."""
    for name, spell in (
        ("in capitals", str.upper),
        ("with a prefix", lambda doc: f"index-7/{doc}"),
        ("without their prefix", lambda doc: doc.rpartition("/")[2]),
        ("with a suffix", lambda doc: f"{doc}.html"),
        ("with leading zeros", lambda doc: f"cran/{int(doc.rpartition('/')[2]):07}"),
        ("as decimal numbers", lambda doc: f"{doc}.0"),
        ("URL-encoded", lambda doc: quote(doc, safe="")),
        ("as chunks", lambda doc: f"{doc}#0"),
        ("as hashes", lambda doc: hashlib.sha256(doc.encode()).hexdigest()[:12]),
        ("counted from 0 instead of 1", lambda doc: f"cran/{int(doc.rpartition('/')[2]) - 1}"),
    ):
        yield of(f"document ids {name}", ids(spell))
    yield of("half of the document ids with a prefix", ids(lambda doc: f"new-{doc}", 0.5))
    yield of("query ids in capitals", lambda run, _w, _r: {q.upper(): a for q, a in run.items()})


def timed(of: Callable[..., Break]) -> Iterator[Break]:
    """Slower answers, and times that are not there."""
    yield of("4 times slower", slower(4))
    yield of("twice as slow", slower(2))
    yield of("1.2 times slower", slower(1.2), why="p95 may rise by 50 %")
    yield of("one answer in ten 20 times slower", slower(20, 0.1))
    yield of(
        "one answer in 50 takes 20 times as long",
        slower(20, 0.02),
        why=("a 95th percentile does not see the slowest 2 %"),
    )
    yield of("no times in the file", for_some(1.0, lambda a, _r: replace(a, ms=None)))
    yield of("times of every second answer only", for_some(0.5, lambda a, _r: replace(a, ms=None)))


HARMLESS: dict[str, InFile] = {
    "the baseline itself": lambda run, _w, _r: run,
    "scores ten times as large": each(lambda d, _r: [(doc, 10 * score) for doc, score in d]),
    "documents below rank 20 in another order": each(
        lambda d, r: scored([x for x, _ in d[:20]] + r.sample([x for x, _ in d[20:]], len(d[20:])))
    ),
    "lines of the file in another order": lambda run, _w, rng: dict(
        rng.sample(list(run.items()), len(run))
    ),
    "twice as quick": slower(0.5),
    "a relevant document moved to the top of each": lambda run, w, _r: {
        q: replace(
            a,
            docs=scored(
                sorted(
                    (d for d, _ in a.docs), key=lambda d, q=q: -(w.grades.get(q, {}).get(d, 0) > 0)
                )
            ),
        )
        for q, a in run.items()
    },
}


# ── live ─────────────────────────────────────────────────────────────────────────────────────────


class Refused(Exception):
    """What a broken search raises."""


def chance(text: str, one_in: int) -> bool:
    """Whether a query is one of those that a break hits: the same ones every time."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % one_in == 0


def raising(one_in: int) -> Live:
    """The search raises for some queries."""

    def how(search: Search, _world: World, _rng: Random) -> Search:
        def broken(text: str) -> Any:
            if chance(text, one_in):
                raise Refused("connection refused")
            return search(text)

        return broken

    return how


def typed(change: Callable[[str], str]) -> Live:
    """The text arrives otherwise than it was typed."""
    return lambda search, _w, _r: lambda text: search(change(text))


def returned(change: Callable[[Any, str], Any]) -> Live:
    """What is returned is changed."""
    return lambda search, _w, _r: lambda text: change(search(text), text)


def stale(percent: int) -> Live:
    """The index lacks a share of the documents."""

    def how(_search: Search, world: World, rng: Random) -> Search:
        gone = set(rng.sample(sorted(world.documents), len(world.documents) * percent // 100))
        kept = {doc: texts for doc, texts in world.documents.items() if doc not in gone}
        return paused(world.over(kept), world)

    return how


def titles_only(_search: Search, world: World, _rng: Random) -> Search:
    """The field of the text is no longer searched."""
    kept = {doc: (title, "") for doc, (title, _) in world.documents.items()}
    return paused(world.over(kept), world)


def stuck_cache(search: Search, _world: World, _rng: Random) -> Search:
    """One query in five gets the answer of the one before."""
    last: list[Any] = []

    def broken(text: str) -> Any:
        found = search(text)
        if last and chance(text, 5):
            found = last[0]
        last[:] = [found]
        return found

    return broken


def every_word(search: Search, world: World, _rng: Random) -> Search:
    """Only documents that hold every word of four letters or more."""

    def broken(text: str) -> Any:
        words = [word for word in text.lower().split() if len(word) > 3]
        texts = world.documents
        return [p for p in search(text) if all(w in " ".join(texts[p[0]]).lower() for w in words)]

    return broken


def waiting(factor: float, one_in: int = 1) -> Live:
    """Some queries wait so many times as long."""

    def how(search: Search, world: World, _rng: Random) -> Search:
        def broken(text: str) -> Any:
            if chance(text, one_in):
                time.sleep((factor - 1) * pause(text, world))
            return search(text)

        return broken

    return how


def pause(text: str, world: World) -> float:
    """Seconds that a live query takes beside its work: log-normal, the same for the same text."""
    return world.pause_ms / 1000 * math.exp(0.5 * Random(text).gauss(0, 1))


def paused(search: Search, world: World) -> Search:
    """The search, with its pause."""

    def found(text: str) -> Any:
        time.sleep(pause(text, world))
        return search(text)

    return found


def live() -> Iterator[Break]:
    """Search functions, broken and changed."""

    def of(name: str, how: Live, *, harmless: bool = False, why: str = "") -> Break:
        return Break(name, how, live=True, harmless=harmless, why=why)

    yield of("raises for every query", raising(1))
    yield of("raises for 1 query in 7", raising(7))
    yield of("raises for 1 query in 50", raising(50))
    yield of("returns nothing", returned(lambda _f, _t: []))
    yield of("returns nothing for 1 query in 7", returned(lambda f, t: [] if chance(t, 7) else f))
    yield of("returns None", returned(lambda _f, _t: None))
    yield of("returns a dict for 1 query in 7", returned(lambda f, t: {} if chance(t, 7) else f))
    yield of("every document twice", returned(lambda f, _t: [p for p in f for _ in (0, 1)]))
    yield of("scores are NaN", returned(lambda f, _t: [(d, math.nan) for d, _ in f]))
    yield of("scores change sign", returned(lambda f, _t: [(d, -s) for d, s in f]))
    yield of(
        "order shuffled",
        returned(lambda f, t: scored([d for d, _ in Random(t).sample(f, len(f))])),
    )
    yield of("first hit dropped", returned(lambda f, _t: f[1:]))
    yield of("top 5 only", returned(lambda f, _t: f[:5]))
    yield of("one answer for all", lambda s, w, _r: lambda _text: s(next(iter(w.texts.values()))))
    yield of("ids of another index", returned(lambda f, _t: [(f"v2:{d}", s) for d, s in f]))
    yield of(
        "short queries reversed",
        lambda s, w, _r: (
            lambda text: (
                scored([d for d, _ in s(text)[::-1]])
                if len(text.split()) <= shortest(w, 0.25)
                else s(text)
            )
        ),
    )
    yield of(
        "queries beyond ASCII find nothing",
        lambda s, _w, _r: lambda text: s(text) if text.isascii() else [],
    )
    yield of(
        "queries beyond ASCII lose their last half",
        lambda s, _w, _r: lambda text: s(text if text.isascii() else text[: len(text) // 2]),
    )
    yield of("only the first word counts", typed(lambda text: text.split()[0]))
    yield of("the last word is lost", typed(lambda text: " ".join(text.split()[:-1]) or text))
    yield of("cut to 30 characters", typed(lambda text: text[:30]))
    yield of("letters a to c are lost", typed(lambda t: "".join(c for c in t if c not in "abc")))
    yield of("every word must occur", every_word)
    for percent in (20, 10, 5):
        yield of(f"index without {percent} % of the documents", stale(percent))
    yield of("only titles are searched", titles_only)
    yield of("1 query in 5 gets the answer before it", stuck_cache)
    yield of("4 times slower", waiting(4))
    yield of("1 query in 8 takes 10 times as long", waiting(10, 8))
    yield of("in capitals", typed(str.upper), harmless=True)
    yield of("a blank at the end", typed(lambda text: f"{text} "), harmless=True)
    yield of(
        "returns dicts in place of pairs",
        returned(lambda f, _t: [{"id": d, "score": s} for d, s in f]),
        harmless=True,
    )


def shortest(world: World, share: float) -> int:
    """The most words that the shortest share of the queries have."""
    counts = sorted(len(text.split()) for text in world.texts.values())
    return counts[int(share * len(counts))]


# ── held against the gate ────────────────────────────────────────────────────────────────────────


class Trial:
    """The gate over one world, in a folder of its own."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.search = world.over(world.documents)
        self.qrels = karat.Qrels.from_dict(world.grades)
        texts = world.texts
        self.queries = karat.Queries(
            pl.DataFrame({"query_id": list(texts), "text": list(texts.values())})
        )
        rng = Random(0)
        self.run = {
            query: Answer(self.search(text), 30 * math.exp(0.5 * rng.gauss(0, 1)))
            for query, text in texts.items()
        }
        (folder / "baseline.jsonl").write_bytes(written(self.run))
        self.policy = self.started("baseline.jsonl")

    def started(self, baseline: str) -> Path:
        """The policy that ``karat gate --init`` writes."""
        path = self.folder / f"{baseline}.toml"
        run = karat.read_run(self.folder / baseline)
        start_policy(path, self.qrels, run, queries=self.queries)
        return path

    def live_baseline(self) -> None:
        """Ask the search as it is, timed."""
        self.asked(paused(self.search, self.world), "live.jsonl")
        self.live_policy = self.started("live.jsonl")

    def asked(self, search: Search, name: str) -> None:
        """Ask a search by ``karat.benchmark``, and write its run."""
        golden = (self.queries, self.qrels)
        results = karat.benchmark(golden, search, ["nDCG@10"], concurrency=8, progress=False)
        [run] = results.runs.values()
        karat.write_run(run, self.folder / name)

    def outcome(self, broken: Break) -> Outcome:
        """What the gate says of a broken search."""
        rng = Random(broken.name)
        try:
            if broken.live:
                self.asked(
                    broken.how(paused(self.search, self.world), self.world, rng), "new.jsonl"
                )
            else:
                found = broken.how(dict(self.run), self.world, rng)
                content = found if isinstance(found, bytes) else written(found)
                (self.folder / "new.jsonl").write_bytes(content)
            held = karat.gate(
                self.live_policy if broken.live else self.policy,
                self.qrels,
                self.folder / ("live.jsonl" if broken.live else "baseline.jsonl"),
                self.folder / "new.jsonl",
                queries=self.queries,
            )
        except KaratError as error:
            reason = str(error).splitlines()[0].replace(f"{self.folder}/", "")
            return Outcome(broken, error.exit_code, "refused", reason)
        return Outcome(broken, held.exit_code, held.verdict, said(held), dropped(held))


def said(held: Gate) -> str:
    """The first check that did not pass."""
    first = held.checks[0]
    return "" if first.verdict == "pass" else f"{first.rule}: {first.reason}"


def dropped(held: Gate) -> tuple[float | None, ...]:
    """The relative drops by the rules, in the order of the policy."""
    found = {
        check.measure: check.drop / check.baseline_value
        for check in held.checks
        if check.measure and check.drop is not None and check.baseline_value
    }
    return found.get("nDCG@10"), found.get("AP")


def cranfield(folder: Path) -> World:
    """Cranfield: 1,400 abstracts, 225 questions; each twelfth ends in a character beyond ASCII."""
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    grades: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels/test.tsv").read_text().splitlines()[1:]:
        query, doc, grade = line.split("\t")
        grades.setdefault(f"q{query}", {})[f"cran/{doc}"] = float(grade)
    return World(
        texts={
            f"q{row['_id']}": row["text"] + (" …" if place % 12 == 0 else "")
            for place, row in enumerate(asked)
        },
        grades=grades,
        documents={f"cran/{row['_id']}": (row["title"], row["text"]) for row in corpus},
        over=by_bm25,
    )


def by_bm25(documents: Mapping[str, tuple[str, str]]) -> Search:
    """The demo's first system over documents."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(connection.cursor()) as cursor:
        cursor.execute(
            "CREATE VIRTUAL TABLE pages USING fts5("
            "doc_id UNINDEXED, title, text, tokenize = 'porter unicode61')"
        )
        cursor.executemany(
            "INSERT INTO pages VALUES (?, ?, ?)", [(d, *texts) for d, texts in documents.items()]
        )
    known: dict[str, Ranking] = {}  # so that live times are those of the pause

    def found(text: str) -> Ranking:
        if text not in known:
            known[text] = bm25.answer(connection, text, DEPTH)
        return list(known[text])

    return found


def row(outcome: Outcome) -> str:
    """A line of the table."""
    broken = outcome.broken
    result = {0: "passes", 1: "**fail**", 2: "**refused**", 3: f"**{outcome.verdict}**"}
    shown = result[outcome.code].replace("_", " ")
    reason = outcome.reason
    if not outcome.code:
        why = broken.why or WITHIN
        reason = "rightly: no user is worse off" if broken.harmless else f"not stopped: {why}"
    known = outcome.drops if outcome.verdict != "unhealthy" else (None, None)
    drops = ["" if drop is None else f"{-100 * drop:+.1f} %" for drop in known]
    drops = ["0" if drop in ("+0.0 %", "-0.0 %") else drop.replace("-", "−") for drop in drops]
    cells = [broken.name, *drops, f"{shown} ({outcome.code})", reason.replace("|", "\\|")]
    return f"| {' | '.join(cells)} |"


def summary(outcomes: list[Outcome]) -> str:
    """How many were stopped."""
    harmful = [each for each in outcomes if not each.broken.harmless]
    harmless = [each for each in outcomes if each.broken.harmless]
    by_code = {code: sum(each.code == code for each in harmful) for code in (1, 2, 3, 0)}
    unsure = sum(each.verdict == "cannot_tell" for each in harmful)
    return (
        f"Of {len(harmful)} ways of breaking it, {len(harmful) - by_code[0]} are stopped: "
        f"{by_code[1]} fail (1), {by_code[2]} are refused (2), {by_code[3] - unsure} are unhealthy "
        f"and {unsure} cannot be told (3); {by_code[0]} pass. Of {len(harmless)} harmless changes "
        f"{sum(not each.code for each in harmless)} pass."
    )


def main() -> None:
    """Print a table of what is stopped."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CRANFIELD
    if not (folder / "corpus.jsonl").is_file():
        print(f"skipped: there is no Cranfield in {folder}")
        return
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        trial = Trial(cranfield(folder), Path(scratch))
        trial.live_baseline()
        for title, breaks in (("In run files", in_file()), ("Live", live())):
            print(f"\n### {title}\n\n| change | nDCG@10 | AP | gate | why |")
            print("| --- | ---: | ---: | --- | --- |")
            for broken in breaks:
                outcomes.append(trial.outcome(broken))
                print(row(outcomes[-1]), flush=True)
    print(f"\n{summary(outcomes)}")


if __name__ == "__main__":
    main()
