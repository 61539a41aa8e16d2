"""Search functions broken: for benchmarks/gate_breaks.py."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from gate_world import Break, Live, Search, World, scored


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
    yield of("the last word is lost", typed(lambda text: text.rstrip(" .…").rpartition(" ")[0]))
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
