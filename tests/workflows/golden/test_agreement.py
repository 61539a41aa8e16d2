"""Agreement of a golden set, and that it is the raters' own: known errors are found again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from karat.demo import _semantic, bm25, hybrid
from karat.errors import UsageError
from karat.formats import read_documents, read_qrels, read_queries
from karat.store.sql import queries
from karat.tables import Pairs, Run
from karat.workflows.golden.agreement import agreement_in, disagreements_in
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.pooling import enqueue, pool
from karat.workflows.golden.queries import pairs_in
from karat.workflows.judging.in_place import rate, rate_pairs
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
QUERIES = 40
# Row: the grade that is right; column: what the rater gives. A careful rater, and a mild one.
CAREFUL = np.array(
    [
        [0.90, 0.08, 0.02, 0.00],
        [0.08, 0.80, 0.10, 0.02],
        [0.02, 0.10, 0.78, 0.10],
        [0.00, 0.02, 0.08, 0.90],
    ]
)
MILD = np.array(
    [
        [0.75, 0.20, 0.05, 0.00],
        [0.03, 0.70, 0.25, 0.02],
        [0.00, 0.05, 0.70, 0.25],
        [0.00, 0.00, 0.05, 0.95],
    ]
)


def true_kappa(right: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Quadratic kappa of two raters whose errors are independent, given the right grades.

    With the shares pi of the right grades, both give (a, b) with the probability
    P[a, b] = sum over t of pi[t] first[t, a] second[t, b], each alone with its margins p and q;
    kappa = 1 - sum (a - b)^2 P[a, b] / sum (a - b)^2 p[a] q[b].
    """
    pi = np.bincount(right, minlength=4) / len(right)
    both = np.einsum("t,ta,tb->ab", pi, first, second)
    grade = np.arange(4)
    far = (grade[:, None] - grade[None, :]) ** 2
    by_chance = np.outer(both.sum(axis=1), both.sum(axis=0))
    return float(1 - (far * both).sum() / (far * by_chance).sum())


@pytest.mark.deep  # coverage
def test_the_agreement_of_simulated_raters_is_found_again(
    shop: Workspace, tick: Tick, tmp_path: Path, field_data: Path
) -> None:
    cranfield = field_data / "cranfield"
    asked = read_queries(cranfield).frame.head(QUERIES)
    held = read_documents(cranfield).frame.select(
        "doc_id", pl.col("title").fill_null(""), pl.col("text").fill_null("")
    )
    lines = [json.dumps({"_id": q, "text": t}) for q, t in asked.select("query_id", "text").rows()]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert import_from(shop, tmp_path / "queries.jsonl", now=tick()).queries == QUERIES
    assert import_from(shop, cranfield / "corpus.jsonl", now=tick()).documents == 1400

    texts = dict(asked.select("query_id", "text").iter_rows())
    by_words, by_meaning = bm25.rank(held, texts, 10), _semantic.rank(held, texts, 10)
    systems = {
        "bm25": by_words,
        "semantic": by_meaning,
        "hybrid": hybrid.rank([by_words, by_meaning], 10),
    }
    runs = [
        Run.from_dict({query: dict(found) for query, found in ranking.items()}, name)
        for name, ranking in systems.items()
    ]
    pooled = pool(shop, runs, now=tick(), k=5)
    # The top 5 of three systems: 5 of each query at the least, 15 at the most.
    assert 5 * QUERIES <= pooled.chosen == pooled.added <= 15 * QUERIES
    assert (pooled.queries, pooled.waiting) == (QUERIES, 2 * pooled.added)

    # Cranfield grades go to 4, ours to 3; what it does not list is 0.
    known = read_qrels(cranfield).frame.select("query_id", "doc_id", "grade").iter_rows()
    right = {(query, doc): min(int(grade), 3) for query, doc, grade in known}
    seed = np.random.default_rng(20261121)
    met: dict[str, list[int]] = {}
    for name, errors in (("careful", CAREFUL), ("mild", MILD)):
        rater = Judging(shop, name, tick)
        while (card := rater.card()) is not None:
            pair = (card.claim.query_id, card.claim.doc_id)
            assert card.claim.text is not None
            assert card.votes == []
            grade = seed.choice(4, p=errors[right.get(pair, 0)])
            rater.submit(card, float(grade), seconds=1)
            if card.claim.kind == "rating":
                met.setdefault(name, []).append(right.get(pair, 0))
    assert len(met["careful"]) == len(met["mild"]) == pooled.added

    found = agreement_in(shop)
    assert (found.pairs, found.queries) == (pooled.added, QUERIES)
    truth = true_kappa(np.array(met["mild"]), CAREFUL, MILD)
    low, high = found.headline.ci_low, found.headline.ci_high
    assert low is not None
    assert high is not None
    assert low <= truth <= high
    assert high - low < 0.2  # it says something
    # Hidden repeats: about 5 in 100, and their agreement is that of a rater with themselves.
    for one, errors in zip(found.one_rater, (CAREFUL, MILD), strict=True):
        assert one.judged == pooled.added
        assert one.self_equal.pairs == pytest.approx(0.05 * pooled.added, abs=2)
        alone = true_kappa(np.array(met[one.rater]), errors, errors)
        assert one.self_kappa.value == pytest.approx(alone, abs=0.35)  # of some twenty pairs
    # The mild one gives more: by E[mild] - E[careful] over the right grades.
    grade, right_ones = np.arange(4), np.bincount(met["mild"], minlength=4) / len(met["mild"])
    more = float(right_ones @ (MILD @ grade - CAREFUL @ grade))
    leniency = next(one.leniency for one in found.one_rater if one.rater == "mild")
    assert leniency.ci_low is not None
    assert leniency.ci_high is not None
    assert leniency.ci_low <= more <= leniency.ci_high


CSV = """query_id,query,doc_id,grade,rater,reason
q1,door,d1,0,ann,all about windows
q1,door,d1,3,ben,
q1,door,d2,2,ann,
q1,door,d2,3,ben,
q2,wall,d1,1,ann,
q2,wall,d1,1,ben,
"""


@pytest.fixture
def rated(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Two raters, three pairs; of one they think differently."""
    (tmp_path / "said.csv").write_text(CSV, encoding="utf-8")
    assert import_from(shop, tmp_path / "said.csv", now=tick()).judgments == 6
    return shop


def test_disagreements_wait_until_somebody_settles_them(rated: Workspace, tick: Tick) -> None:
    listed = disagreements_in(rated, now=tick())
    assert listed.frame.select("query_id", "doc_id", "text").rows() == [("q1", "d1", "door")]
    assert listed.queued == 0
    judge = Judging(rated, "eve", tick, adjudicate=True)
    assert judge.card() is None
    assert disagreements_in(rated, now=tick(), queue_them=True).queued == 1
    assert disagreements_in(rated, now=tick(), queue_them=True).queued == 0
    assert Judging(rated, "ann", tick, adjudicate=True).card() is None  # never one's own
    assert Judging(rated, "ann", tick, adjudicate=True).progress().startswith("no disagreement")
    assert judge.progress() == "1 disagreement to settle"
    card = judge.card()
    assert card is not None
    assert [(vote.grade, vote.reason) for vote in card.votes] == [
        (0, "all about windows"),
        (3, None),
    ]
    judge.submit(card, 2)
    assert disagreements_in(rated, now=tick()).frame.height == 0


def test_agreement_is_never_of_what_was_settled(rated: Workspace, tick: Tick) -> None:
    before = agreement_in(rated)
    disagreements_in(rated, now=tick(), queue_them=True)
    judge = Judging(rated, "eve", tick, adjudicate=True)
    card = judge.card()
    assert card is not None
    judge.submit(card, 3)
    after = agreement_in(rated)
    assert after.figures == before.figures
    assert after.raters == before.raters == ("ann", "ben")
    assert after.sentence == before.sentence


def test_classes_are_attributes_of_queries(rated: Workspace) -> None:
    with pytest.raises(UsageError, match="no attribute 'nope'"):
        agreement_in(rated, "nope")
    assert [figure.name for figure in agreement_in(rated, "no_answer").classes] == ["false"]


@pytest.fixture
def contradicted(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Two raters, of one mind about d1 and not about d2; an import of nobody's contradicts both."""
    for name, text in (
        ("said", "q1,d1,3,ann\nq1,d1,3,ben\nq1,d2,0,ann\nq1,d2,3,ben\nq1,d3,2,ann\n"),
        ("nobody", "q1,d1,0\nq1,d2,0\nq1,d3,3\nq1,d4,1\n"),
    ):
        head = "query_id,doc_id,grade,rater" if name == "said" else "query_id,doc_id,grade"
        (tmp_path / f"{name}.csv").write_text(f"{head}\n{text}", encoding="utf-8")
        import_from(shop, tmp_path / f"{name}.csv", now=tick())
    return shop


def test_an_imported_grade_that_raters_contradict_is_listed(
    contradicted: Workspace, tick: Tick
) -> None:
    found = disagreements_in(contradicted, now=tick(), queue_them=True)
    rows = found.frame.select("doc_id", "between", "imported").rows()
    # d3: 2 and 3 are one relevance, one grade apart; d4: nobody else said anything.
    assert rows == [("d2", "raters", None), ("d1", "import", 0)]
    assert found.queued == 1  # what raters disagree on, and no more unless it is asked for
    assert disagreements_in(contradicted, now=tick(), queue_imported=True).queued == 1
    eve = Judging(contradicted, "eve", tick, adjudicate=True)
    settled = set()
    while (card := eve.card()) is not None:
        settled.add(card.claim.doc_id)
        eve.submit(card, 0)
    assert settled == {"d1", "d2"}
    assert disagreements_in(contradicted, now=tick()).frame.is_empty()


def test_a_correction_with_votes_in_sight_changes_no_agreement(shop: Workspace, tick: Tick) -> None:
    with shop.store.begin() as c:
        queries.put(c, shop.golden.id, pl.DataFrame({"query_id": ["q1"], "text": ["door"]}), tick())
    for doc_id, ann, ben in (("d1", 0, 3), ("d2", 2, 2)):
        for rater, grade in (("ann", ann), ("ben", ben)):
            enqueue(shop, Pairs(pl.DataFrame({"query_id": ["q1"], "doc_id": [doc_id]})), now=tick())
            rate_pairs(shop, rater, [("q1", doc_id)], grade, now=tick())
    before = agreement_in(shop)
    rate(shop, "ann", "q1", "d1", 3, now=tick())
    assert agreement_in(shop).confusion == before.confusion
    row = pairs_in(shop).filter(doc_id="d1").row(0, named=True)
    assert (row["grades"], row["said"]) == ([0.0, 3.0], "ann 3, ben 3")
