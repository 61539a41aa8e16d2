"""Run files broken: for benchmarks/gate_breaks.py."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from urllib.parse import quote

from gate_world import DEPTH, Answer, Break, InFile, Ranking, Run, World, scored, written


def each(change: Callable[[Ranking, Random], Ranking]) -> InFile:
    """Every ranking changed by itself."""

    def how(run: Run, _world: World, rng: Random) -> Run:
        return {q: replace(a, docs=change(list(a.docs), rng)) for q, a in run.items()}

    return how


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

    yield from orders(of)
    yield from lacking(of)
    yield from spelt(of)
    yield from timed(of)
    for name, how in HARMLESS.items():
        yield of(name, how, harmless=True)


def orders(of: Callable[..., Break]) -> Iterator[Break]:
    """Rankings in another order, cut, or with other documents."""
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


def lacking(of: Callable[..., Break]) -> Iterator[Break]:
    """Queries and documents that lack or stand there twice, and damaged files."""
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
