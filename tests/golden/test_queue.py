"""The rules of the queue: orders, hidden repeats, submissions, and how far there is to go."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW, deep_but

from karat.errors import UsageError
from karat.golden.queue import (
    MODULUS,
    REASONS,
    REPEAT_GAP,
    Standing,
    checked_order,
    checked_submission,
    gold_owed,
    left,
    place,
    progress_line,
    read_lease,
    repeat_of,
    repeat_owed,
    seconds_left,
    shuffle_keys,
    shuffle_number,
    standing,
)

SCALE = (0.0, 3.0)
GRADES = (0.0, 1.0, 2.0, 3.0)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


def due(rater: str, done: int, repeats: float, salt: str = "s") -> bool:
    """Whether a repeat falls due at just this place."""
    return repeat_owed(salt, rater, Standing(done, done - 1), repeats)


def dealt(runs: Sequence[int], order: str, *, repeats: float, golds: float = 0) -> list[str]:
    """The kinds that a rater of these queries is dealt; a capital begins a query."""
    kinds: list[str] = []
    seen: list[tuple[str, str]] = []
    known = 1000
    for number, run in enumerate(runs):
        for n in range(run):
            while order == "mixed" or not n:
                at = standing(seen[:-150:-1], len(seen), order)
                if repeat_owed("s", "ann", at, repeats):
                    kinds.append("repeat")
                elif known and gold_owed("s", "ann", at, golds):
                    kinds.append("gold")
                    known -= 1
                else:
                    break
                seen.append((kinds[-1], "other"))
            kinds.append("rating" if n else "Rating")
            seen.append(("rating", f"q{number}"))
    return kinds


def test_the_numbers_are_those_of_any_machine() -> None:
    # Frozen: a store made today must be read alike tomorrow. By hand:
    # int(blake2b("order a\0salt\0ann", 8 bytes).hexdigest(), 16) % (2**31 - 2) + 1, and so on.
    assert shuffle_keys("salt", "ann") == (1185388749, 2030554183)
    assert shuffle_number("salt", "q1", "d1") == 406399274
    assert [n for n in range(130) if due("ann", n, 0.05, "salt")] == [21, 46, 64, 88, 116]


@FEW
@given(names, names)
def test_keys_are_in_range_and_no_step_leaves_63_bits(salt: str, rater: str) -> None:
    a, b = shuffle_keys(salt, rater)
    assert 1 <= a < MODULUS
    assert 0 <= b < MODULUS
    assert (MODULUS - 1) * a + b < 2**63


@FEW
@given(st.sets(st.integers(0, MODULUS - 1), min_size=2), names)
def test_no_two_numbers_come_to_one_place(numbers: set[int], rater: str) -> None:
    keys = shuffle_keys("salt", rater)
    assert len({place(number, keys) for number in numbers}) == len(numbers)


def test_raters_orders_have_nothing_to_do_with_each_other() -> None:
    pairs = [shuffle_number("s", "q", f"d{n}") for n in range(200)]
    orders = []
    for rater in range(60):
        keys = shuffle_keys("s", str(rater))
        orders.append([pair for _, pair in sorted((place(pair, keys), pair) for pair in pairs)])
    # Of 200 pairs each is first with probability 1/200: 60 raters share few of their firsts.
    firsts = Counter(order[0] for order in orders)
    assert max(firsts.values()) <= 5
    # Spearman's rho of two independent orders of 200 has a standard deviation of 1/sqrt(199).
    ranks = [{n: i for i, n in enumerate(order)} for order in orders]
    rho = [
        1 - 6 * sum((one[n] - two[n]) ** 2 for n in pairs) / (200 * (200**2 - 1))
        for one, two in zip(ranks[::2], ranks[1::2], strict=True)
    ]
    assert abs(sum(rho) / len(rho)) < 4 / math.sqrt(199 * len(rho))


@pytest.mark.parametrize("repeats", deep_but([0.05], [0.01, 0.05, 0.1, 1 / 3, 0.5]))
def test_there_is_one_repeat_to_every_so_many_ratings(repeats: float) -> None:
    first, last = 1000, 21000
    places = [n for n in range(first, last) if due("ann", n, repeats)]
    ratings = last - first - len(places)
    assert len(places) / ratings == pytest.approx(repeats, abs=2 / ratings)


@pytest.mark.parametrize("order", ["query", "mixed"])
@pytest.mark.parametrize("run", deep_but([1, 20], [1, 7, 20, 50]))
def test_the_share_is_the_same_however_many_documents_a_query_has(order: str, run: int) -> None:
    """2,000 pairs, in queries of as many as ``run``: 5 % are repeats, 10 % gold items.

    Of the repeats one may lack for the first 20 places, and as many as fall due in the last query.
    """
    kinds = dealt([run] * (2000 // run), order, repeats=0.05, golds=0.1)
    lacking = 2 + (run / 20 if order == "query" else 0)
    n_repeats, n_golds = kinds.count("repeat"), kinds.count("gold")
    # One in 21 of all that is judged is a repeat, one in 11 gold: hidden ones are counted off too.
    every = len(kinds)
    assert every / 21 - lacking <= n_repeats <= every / 21 + 1
    assert every / 11 - 2 * lacking <= n_golds <= every / 11 + 1
    assert n_repeats / 2000 == pytest.approx(0.05, abs=0.01)


@FEW
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.sampled_from([0.05, 0.2, 0.5]))
def test_within_a_query_nothing_hidden_comes(runs: list[int], share: float) -> None:
    kinds = dealt(runs, "query", repeats=share, golds=share)
    assert kinds[-1].lower() == "rating", "nor as the last of all"
    for before, after in itertools.pairwise(kinds):
        hidden = before in {"repeat", "gold"}
        assert not (hidden and after == "rating"), "only the first of a query follows one"


def test_where_a_rater_stands() -> None:
    newest_first = [("gold", "x"), ("rating", "b"), ("repeat", "x"), ("rating", "b")]
    before = [("repeat", "y"), ("rating", "a"), ("rating", "a")]
    # a a y | b x b x: the query b began when three were done.
    assert standing(newest_first + before, 7, "query") == Standing(7, 3, repeats=1, golds=1)
    # By mixed, the last b is a query of its own, dealt when five were done.
    assert standing(newest_first + before, 7, "mixed") == Standing(7, 5, repeats=0, golds=1)
    assert standing([("gold", "x")], 1, "query") == Standing(1, -1, golds=1)
    assert standing([], 0, "query") == Standing(0, -1)


def test_no_repeat_comes_before_there_is_something_to_repeat() -> None:
    for rater in map(str, range(100)):
        assert not repeat_owed("s", rater, Standing(REPEAT_GAP, -1), 0.5)


def test_where_repeats_come_differs_from_rater_to_rater() -> None:
    first = {next(n for n in range(21, 99) if due(str(r), n, 0.05)) for r in range(100)}
    # Block 0 is places 0 to 20, too soon for any; block 1 is 21 to 41.
    assert first == set(range(21, 42))


def test_no_share_is_no_repeats_and_a_wrong_one_is_refused() -> None:
    assert not repeat_owed("s", "ann", Standing(500, -1), 0.0)
    assert left("s", "ann", Standing(0, -1), [0, 250, 250], repeats=0.0) == 500
    for share in (-0.01, 0.51, math.nan):
        with pytest.raises(UsageError, match="not from 0 to 0"):
            due("ann", 30, share)


def test_gold_may_come_from_the_start_at_places_of_its_own() -> None:
    gold = [n for n in range(2100) if gold_owed("s", "ann", Standing(n, n - 1), 0.05)]
    assert len(gold) == 100
    assert gold[0] <= 20
    assert gold != [n for n in range(2100) if due("ann", n, 0.05)]


def test_a_repeat_lies_back_far_enough_and_comes_once() -> None:
    history = [("q", f"d{n}") for n in range(30)]
    assert repeat_of("s", "ann", history[:REPEAT_GAP]) is None
    seen: set[tuple[str, str]] = set()
    for _ in range(10):  # the first ten of thirty lie twenty back or more
        pair = repeat_of("s", "ann", history[:30], seen)
        assert pair is not None
        assert pair in history[:10]
        seen.add(pair)
    assert repeat_of("s", "ann", history, seen) is None
    pair = repeat_of("s", "ann", history)
    assert pair is not None
    assert repeat_of("s", "ann", [*history, pair]) != pair


@FEW
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=10),
    st.sampled_from([0.0, 0.05, 0.2, 0.5]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from(["query", "mixed"]),
)
def test_what_is_left_falls_by_one_with_each_judgment(
    runs: list[int], repeats: float, golds: float, order: str
) -> None:
    kinds = dealt(runs, order, repeats=repeats, golds=golds)
    waiting, known = list(runs) if order == "query" else [1] * sum(runs), 1000
    seen: list[tuple[str, str]] = []
    begun = 0
    for number, kind in enumerate([*kinds, "end"]):
        at = standing(seen[::-1], number, order)
        inside = kind == "rating" and order == "query"  # a rating of a query that has begun
        ahead = waiting if inside else [0, *waiting]
        shares = {"repeats": repeats, "golds": golds}
        assert left("s", "ann", at, ahead, known=known, **shares) == len(kinds) - number  # type: ignore[arg-type]
        if kind.lower() == "rating":
            begun += not inside
            waiting[0] -= 1
            waiting = waiting if waiting[0] else waiting[1:]
        known -= kind == "gold"
        seen.append((kind.lower(), f"q{begun}" if kind.lower() == "rating" else "other"))


def test_time_left_is_by_the_raters_own_median() -> None:
    assert seconds_left(10, [5.0] * 4) is None
    assert seconds_left(10, [5.0] * 4 + [None, math.nan]) is None
    assert seconds_left(10, [1.0, 2.0, 3.0, 4.0, 3600.0]) == 30.0  # the median is 3
    assert seconds_left(10, [60.0] * 100 + [6.0] * 50) == 60.0  # the last 50 count


def test_progress_in_words() -> None:
    assert progress_line(40, 60) == "40 of 100 judged"
    assert progress_line(40, 60, [12.0] * 9) == "40 of 100 judged, about 12 minutes left"
    assert progress_line(99, 1, [12.0] * 9) == "99 of 100 judged, about a minute left"
    assert progress_line(1, 900, [12.0] * 9) == "1 of 901 judged, about 3.0 hours left"
    assert progress_line(100, 0) == "all 100 judged: nothing left"
    assert progress_line(0, 0) == "nothing to judge"


def test_a_grade_on_the_scale_is_recorded() -> None:
    held = checked_submission("graded", 2, "  it answers\n in part ", scale=SCALE, grades=GRADES)
    assert (held.state, held.grade, held.reason) == ("graded", 2.0, "it answers in part")
    assert checked_submission("graded", 1.5, None, scale=SCALE).grade == 1.5
    assert checked_submission("graded", 0, " ", scale=SCALE).reason is None


@pytest.mark.parametrize("code", REASONS)
def test_what_cannot_be_judged_has_a_reason(code: str) -> None:
    said = checked_submission("cannot_judge", None, f" {code} :  the link  is dead", scale=SCALE)
    assert said.reason == f"{code}: the link is dead"
    assert said.grade is None
    if code != "other":
        assert checked_submission("cannot_judge", None, code, scale=SCALE).reason == code


@pytest.mark.parametrize(
    ("state", "grade", "reason", "message"),
    [
        ("graded", None, None, "the grade is missing"),
        ("graded", 4, None, "grade 4 is not on the scale"),
        ("graded", -1, None, "not on the scale"),
        ("graded", 1.5, None, "give one of 0, 1, 2, 3"),
        ("graded", math.nan, None, "not on the scale"),
        ("graded", True, None, "not on the scale"),
        ("skipped", 1, None, "neither graded nor cannot_judge"),
        ("cannot_judge", 1, "language", "has no grade, not 1"),
        ("cannot_judge", None, None, "needs a reason"),
        ("cannot_judge", None, "  ", "needs a reason"),
        ("cannot_judge", None, "languages", "did you mean language"),
        ("cannot_judge", None, "other", "needs an explanation"),
        ("cannot_judge", None, "other: ", "needs an explanation"),
        ("graded", 1, "a\0b", "cannot be stored"),
        ("graded", 1, "\ud800", "cannot be stored"),
        ("graded", 1, "x" * 4001, "4001 characters"),
    ],
)
def test_what_is_refused(state: str, grade: float | None, reason: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        checked_submission(state, grade, reason, scale=SCALE, grades=GRADES)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("10 min", 600), ("90s", 90), ("1 hour", 3600), ("0.5 h", 1800), ("2 Minutes", 120)],
)
def test_leases(written: str, seconds: int) -> None:
    assert read_lease(written) == seconds * 1_000_000


@pytest.mark.parametrize("written", ["", "10", "ten min", "10 days", "1 s", "25 h", 10, None])
def test_no_leases(written: object) -> None:
    with pytest.raises(UsageError, match="lease"):
        read_lease(written)


def test_orders() -> None:
    assert checked_order("mixed") == "mixed"
    with pytest.raises(UsageError, match="did you mean query"):
        checked_order("queries")
