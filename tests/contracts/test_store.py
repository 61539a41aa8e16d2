"""What a store promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl
import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.errors import InputError, KaratError, UsageError
from karat.store.sql import (
    alerts,
    audit,
    documents,
    editions,
    gates,
    golden_sets,
    imports,
    judgments,
    pairs,
    queries,
    queue,
    releases,
    runs,
)
from karat.store.sql.opening import Store
from karat.store.sql.schema import APPEND_ONLY, METADATA, imported

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
LEASE = 600 * SECOND
GRADES = {0.0: "Useless: no", 1.0: "Related", 2.0: "Useful", 3.0: "Right: yes"}
POOL = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d1"]})


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


def declared(c: sa.Connection, *, repeats: float = 0, name: str = "shop") -> int:
    set_id = golden_sets.make(
        c,
        name,
        scale=(0, 3),
        grades=GRADES,
        repeats=repeats,
        salt="salt",
        guideline="Judge the need.",
        now=NOW,
    )
    asked = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["shoes", "red shoes"]})
    queries.put(c, set_id, asked, NOW)
    shown = pl.DataFrame({"doc_id": ["d1", "d2"], "title": ["One", "Two"], "text": ["1", "2"]})
    documents.put(c, set_id, shown, NOW)
    return set_id


@pytest.fixture
def shop(c: sa.Connection) -> int:
    set_id = declared(c)
    assert pairs.put(c, set_id, POOL, 2, NOW).added == 3
    return set_id


def claimed(c: sa.Connection, set_id: int, rater: str, now: int = NOW) -> queue.Claim:
    claim = queue.claim(c, set_id, rater, now=now)
    assert claim is not None
    return claim


def judge(c: sa.Connection, set_id: int, rater: str, grade: float = 2, now: int = NOW) -> int:
    """Claim the next pair and grade it."""
    slot_id = claimed(c, set_id, rater, now).slot_id
    return judgments.submit(c, set_id, slot_id, rater, grade=grade, now=now)


def test_a_golden_set_comes_back_as_it_was_declared(c: sa.Connection) -> None:
    set_id = declared(c, repeats=0.05)
    row = golden_sets.find(c)
    assert row == golden_sets.find(c, "shop") == golden_sets.by_id(c, set_id)
    assert (row.scale, row.grades, row.raters, row.repeats) == ((0, 3), GRADES, 2, 0.05)
    assert (row.guideline, row.guideline_text) == ("1", "Judge the need.")
    assert golden_sets.new_guideline(c, set_id, "Judge the need.", NOW) == "1"
    assert golden_sets.new_guideline(c, set_id, "Judge the text.", NOW) == "2"
    assert golden_sets.guidelines(c, set_id) == {"1": "Judge the need.", "2": "Judge the text."}
    assert golden_sets.find(c).guideline == "2"


def test_a_golden_set_that_is_not_there_is_named(c: sa.Connection) -> None:
    with pytest.raises(UsageError, match="karat init"):
        golden_sets.find(c)
    declared(c)
    with pytest.raises(UsageError, match="did you mean shop"):
        golden_sets.find(c, "shopp")
    declared(c, name="site")
    with pytest.raises(UsageError, match="shop, site"):
        golden_sets.find(c)
    with pytest.raises(UsageError, match="already"):
        declared(c)


@ON_BOTH
def test_queries_are_added_changed_and_left(c: sa.Connection) -> None:
    set_id = declared(c)
    asked = pl.DataFrame(
        {
            "query_id": ["q1", "007"],
            "text": ["shoes", "é “NA”"],
            "weight": [0.5, 2.0],
            "no_answer": [False, True],
            "class": ["wear", None],
            "price": [1, 25],
            "probability": [0.25, 1.0],
        }
    )
    assert queries.put(c, set_id, asked, NOW) == queries.Put(added=1, changed=1, same=0)
    assert queries.put(c, set_id, asked, NOW) == queries.Put(added=0, changed=0, same=2)
    frame = queries.frame(c, set_id)
    assert frame["query_id"].to_list() == ["q1", "q2", "007"]
    assert frame.filter(pl.col("query_id") != "q2").select(asked.columns).equals(asked)


def test_dropped_queries_leave_the_queue_and_can_come_back(c: sa.Connection, shop: int) -> None:
    assert queries.drop(c, shop, ["q1", "q1", "none"], NOW) == 1
    assert queries.frame(c, shop)["query_id"].to_list() == ["q2"]
    assert queries.frame(c, shop, dropped=True)["dropped_us"].to_list() == [NOW, None]
    assert pairs.frame(c, shop)["query_id"].to_list() == ["q2"]
    judge(c, shop, "ann")
    assert queue.claim(c, shop, "ann", now=NOW) is None
    back = pl.DataFrame({"query_id": ["q1"], "text": ["shoes"]})
    assert queries.put(c, shop, back, NOW).changed == 1
    assert claimed(c, shop, "ann").query_id == "q1"


def test_a_documents_hash_tells_whether_it_changed(c: sa.Connection) -> None:
    set_id = declared(c)
    before = documents.frame(c, set_id)
    shown = pl.DataFrame({"doc_id": ["d1"], "title": ["One"], "text": ["new"], "language": ["de"]})
    assert documents.put(c, set_id, shown, NOW + 1).changed == 1
    after = documents.frame(c, set_id)
    assert after["language"].to_list() == ["de", None]
    assert [a != b for a, b in zip(before["sha256"], after["sha256"], strict=True)] == [True, False]
    assert after["sha256"][0] == documents.digest("One", "new", None)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"query_id": ["q9"], "doc_id": ["d1"]}, "not in the golden set"),
        ({"query_id": ["q1"] * 2, "doc_id": ["d1"] * 2}, "duplicate pair"),
        ({"query_id": ["q1"], "doc_id": ["d1"], "gold_grade": [4.0]}, "scale from 0 to 3"),
    ],
)
def test_pairs_that_cannot_be_are_refused(
    c: sa.Connection, wrong: dict[str, list[object]], said: str
) -> None:
    set_id = declared(c)
    with pytest.raises(InputError, match=said):
        pairs.put(c, set_id, pl.DataFrame(wrong), 2, NOW)


def test_pairs_move_up_and_get_more_raters_never_fewer(c: sa.Connection) -> None:
    set_id = declared(c)
    assert pairs.put(c, set_id, POOL.with_columns(priority=2), 2, NOW).added == 3
    again = POOL.head(2).with_columns(priority=pl.Series([1, 3]))
    assert pairs.put(c, set_id, again, 3, NOW).added == 0
    assert pairs.put(c, set_id, POOL, 1, NOW).added == 0
    frame = pairs.frame(c, set_id)
    assert frame["open"].to_list() == [3, 3, 2]
    assert pairs.put(c, set_id, again, 2, NOW).added == 0
    assert pairs.frame(c, set_id)["priority"].to_list() == [1, 1, 1]


@ON_BOTH
def test_judgments_are_facts_with_their_circumstances(c: sa.Connection, shop: int) -> None:
    claim = claimed(c, shop, "ann")
    number = judgments.submit(
        c, shop, claim.slot_id, "ann", grade=3, reason=" why  not ", seconds=4.5, now=NOW + 5
    )
    row = judgments.current(c, shop).frame.row(0, named=True)
    assert row == {
        "judgment": number,
        "query_id": claim.query_id,
        "doc_id": claim.doc_id,
        "grade": 3.0,
        "state": "graded",
        "reason": "why not",
        "rater": "ann",
        "source": "human",
        "kind": "rating",
        "time_us": NOW + 5,
        "seconds": 4.5,
        "guideline": "1",
        "document_hash": claim.document_sha256,
    }
    assert (claim.title, claim.text) in {("One", "1"), ("Two", "2")}


def test_what_cannot_be_judged_says_why(c: sa.Connection, shop: int) -> None:
    slot_id = claimed(c, shop, "ann").slot_id
    for wrong in (
        {"state": "cannot_judge", "grade": None},
        {"state": "cannot_judge", "grade": 1, "reason": "language"},
        {"state": "graded", "grade": None},
        {"state": "graded", "grade": 1.5},
        {"state": "graded", "grade": float("nan")},
        {"state": "withdrawn", "grade": None},
    ):
        with pytest.raises(UsageError):
            judgments.submit(c, shop, slot_id, "ann", now=NOW, **wrong)  # type: ignore[arg-type]
    judgments.submit(
        c, shop, slot_id, "ann", grade=None, state="cannot_judge", reason="language", now=NOW
    )
    judged = judgments.current(c, shop)
    assert judged.frame["state"].to_list() == ["cannot_judge"]
    assert judged.ratings.is_empty()


@ON_BOTH
def test_a_correction_supersedes_and_an_undo_withdraws(c: sa.Connection, shop: int) -> None:
    claim = claimed(c, shop, "ann")
    first = judgments.submit(c, shop, claim.slot_id, "ann", grade=1, now=NOW)
    second = judgments.submit(c, shop, claim.slot_id, "ann", grade=2, now=NOW + 1)
    undone = judgments.undo(c, shop, "ann", NOW + 2)
    assert undone is not None
    assert (undone.judgment, undone.grade) == (second, 2)
    assert len(judgments.current(c, shop)) == 0
    facts = judgments.history(c, shop, claim.query_id, claim.doc_id)
    assert facts["supersedes"].to_list() == [None, first, second]
    assert facts["state"].to_list() == ["graded", "graded", "withdrawn"]
    assert not facts["counts"].any()
    assert undone.claim == replace(claim, leased_until_us=NOW + 2 + LEASE)
    third = judgments.submit(c, shop, claim.slot_id, "ann", grade=3, now=NOW + 3)
    assert judgments.current(c, shop).frame["judgment"].to_list() == [third]


def test_undo_goes_back_to_the_first_and_then_forward_again(c: sa.Connection, shop: int) -> None:
    for _ in POOL.rows():
        judge(c, shop, "ann")
    judge(c, shop, "ben")
    undone = []
    while (step := judgments.undo(c, shop, "ann", NOW + 10 + len(undone))) is not None:
        undone.append(step.claim)
    assert len(undone) == 3
    assert len(judgments.current(c, shop)) == 1  # Ben's
    for expected in reversed(undone):
        claim = claimed(c, shop, "ann", NOW + 20)
        assert claim.slot_id == expected.slot_id
        judgments.submit(c, shop, claim.slot_id, "ann", grade=0, now=NOW + 20)
    assert queue.claim(c, shop, "ann", now=NOW + 20) is None


@ON_BOTH
def test_one_submission_sent_twice_is_one_judgment(c: sa.Connection, shop: int) -> None:
    claim = claimed(c, shop, "ann")
    first = judgments.submit(c, shop, claim.slot_id, "ann", grade=1, now=NOW, token="t")
    assert judgments.submit(c, shop, claim.slot_id, "ann", grade=1, now=NOW, token="t") == first
    judgments.undo(c, shop, "ann", NOW)
    there = judgments.history(c, shop, claim.query_id, claim.doc_id).height
    with pytest.raises(judgments.Overtaken, match="undone since"):
        judgments.submit(c, shop, claim.slot_id, "ann", grade=1, now=NOW, token="t")
    assert judgments.history(c, shop, claim.query_id, claim.doc_id).height == there == 2
    queue.later(c, shop, claim.slot_id, "ann", NOW)
    other = claimed(c, shop, "ben")
    with pytest.raises(UsageError, match="token"):
        judgments.submit(c, shop, other.slot_id, "ben", grade=1, now=NOW, token="t")


def record(c: sa.Connection, shop: int, grades: list[float | None], **columns: object) -> int:
    """Import Cy's grades of the pool."""
    given = {"rater": "cy", "source": "import", "time_us": NOW} | columns
    values = {name: pl.lit(value) for name, value in given.items()}
    frame = POOL.with_columns(pl.Series("grade", grades, dtype=pl.Float64), **values)
    import_id = imports.put(
        c, shop, file="a.csv", format="csv", sha256="00", report={"kept": ["3"]}, now=NOW
    )
    done = judgments.record(c, shop, frame, import_id)
    return done.added + done.corrected


def test_what_is_imported_again_adds_only_what_differs(c: sa.Connection, shop: int) -> None:
    assert record(c, shop, [0, 1, None]) == 3
    assert record(c, shop, [0, 1, None]) == 0
    assert record(c, shop, [0, 2, None]) == 1
    frame = judgments.current(c, shop).frame.sort("query_id", "doc_id")
    assert frame["grade"].to_list() == [0, 2, None]
    assert frame["state"].to_list() == ["graded", "graded", "cannot_judge"]
    assert judgments.history(c, shop, "q1", "d2")["import_id"].to_list() == [1, 3]
    noted = c.execute(sa.select(imported.c.report, imported.c.golden_set_id)).all()
    assert noted == [({"kept": ["3"]}, shop)] * 3
    assert pairs.frame(c, shop)["judgments"].to_list() == [1, 1, 1]
    assert queue.claim(c, shop, "cy", now=NOW) is None, "nobody rates twice what was imported"


def test_an_import_with_fewer_columns_takes_no_reason_away(c: sa.Connection, shop: int) -> None:
    assert record(c, shop, [0, 1, None], reason="unclear") == 3
    assert record(c, shop, [0, 1, None]) == 0
    assert record(c, shop, [0, 2, None]) == 1, "another grade has another reason"
    assert record(c, shop, [0, 2, None], reason="other") == 3
    said = judgments.current(c, shop).frame.sort("query_id", "doc_id")
    assert said["reason"].to_list() == ["other"] * 3


def test_an_import_that_does_not_fit_is_refused(c: sa.Connection, shop: int) -> None:
    with pytest.raises(InputError, match="not on the scale"):
        record(c, shop, [0, 1, 9])
    twice = pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["d"] * 2, "grade": [1.0, 2.0]})
    with pytest.raises(InputError, match="cy judges the pair twice"):
        judgments.record(
            c,
            shop,
            twice.with_columns(rater=pl.lit("cy"), source=pl.lit("import"), time_us=NOW),
            None,
        )
    assert len(judgments.current(c, shop)) == 0


def test_an_import_of_what_a_rater_said_here_corrects_it(c: sa.Connection, shop: int) -> None:
    claim = claimed(c, shop, "cy")
    judgments.submit(c, shop, claim.slot_id, "cy", grade=3, now=NOW)
    assert record(c, shop, [0, 0, 0], source="human") == 3
    assert judgments.current(c, shop).frame["grade"].to_list() == [0, 0, 0]
    undone = judgments.undo(c, shop, "cy", NOW)
    assert undone is not None
    assert (undone.grade, undone.claim.slot_id) == (0, claim.slot_id)


@ON_BOTH
def test_an_edition_comes_back_as_it_was_frozen(c: sa.Connection, shop: int) -> None:
    asked = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["a", "b"], "weight": [1.0, None]})
    grades = POOL.with_columns(
        grade=pl.Series([0.0, 1.5, 3.0]),
        votes=pl.Series([2, 2, 1]),
        rule=pl.lit("median"),
        raters=pl.Series([["ann", "ben"], ["ann"], []], dtype=pl.List(pl.String)),
    )
    freeze = {"name": "2026-11", "sha256": "ab", "about": {"rule": "median"}, "now": NOW}
    editions.freeze(c, shop, queries=asked, grades=grades, **freeze)  # type: ignore[arg-type]
    row, its_queries, its_grades = editions.edition(c, shop, "2026-11")
    assert its_queries.equals(asked)
    assert its_grades.equals(grades)
    assert (row.about, row.queries, row.grades, row.created_us) == ({"rule": "median"}, 2, 3, NOW)
    assert editions.editions(c, shop) == [row]
    with pytest.raises(UsageError, match="never change"):
        editions.freeze(c, shop, queries=asked, grades=grades, **freeze)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean 2026-11"):
        editions.edition(c, shop, "2026-12")


def test_a_run_is_its_content(c: sa.Connection, shop: int) -> None:
    given = {"sha256": "ab", "path": "runs/ab.parquet", "queries": 2, "rows": 20, "now": NOW}
    first = runs.put(c, shop, name="old", about={"commit": "1"}, **given)  # type: ignore[arg-type]
    assert runs.put(c, shop, name="new", about={}, **given) == first  # type: ignore[arg-type]
    (row,) = runs.runs(c, shop)
    assert (row.name, row.about, row.path, row.rows) == ("old", {"commit": "1"}, given["path"], 20)


def test_of_two_events_with_one_number_one_is_refused(store: Store) -> None:
    with store.begin() as c:
        for seq in (1, 2):
            releases.append(c, "r", seq, at_us=NOW, kind="evidence", content={"seq": seq})
        releases.append(c, "later", 1, at_us=NOW + 1, kind="started", content={})
    with pytest.raises(releases.Taken), store.begin() as c:
        releases.append(c, "r", 2, at_us=NOW, kind="held", content={"seq": 0})
    with store.read() as c:
        assert releases.events(c, "r") == [{"seq": 1}, {"seq": 2}]
        assert releases.names(c) == ["later", "r"]


def test_a_release_is_in_flight_until_its_switch_has_followed(c: sa.Connection) -> None:
    ledgers = {
        "a": ("started", "switched", "evidence"),
        "b": ("started", "switched", "rolled_back", "unreachable"),
        "c": ("started", "rolled_back", "switched"),
        "d": ("started", "switched", "finished"),
    }
    for name, kinds in ledgers.items():
        for seq, kind in enumerate(kinds, 1):
            releases.append(c, name, seq, at_us=NOW, kind=kind, content={})
    assert releases.in_flight(c) == ["a", "b"]


def test_a_lease_is_of_one_holder_until_it_ends(c: sa.Connection) -> None:
    assert releases.take(c, "r", "a", now=NOW, until=NOW + 10)
    assert not releases.take(c, "r", "b", now=NOW + 9, until=NOW + 20)
    assert releases.take(c, "r", "a", now=NOW + 9, until=NOW + 15)  # renewed
    releases.give_back(c, "r", "b")  # not theirs
    assert not releases.take(c, "r", "b", now=NOW + 14, until=NOW + 30)
    assert releases.take(c, "r", "b", now=NOW + 15, until=NOW + 30)  # it has ended
    releases.give_back(c, "r", "b")
    assert releases.take(c, "r", "c", now=NOW + 16, until=NOW + 30)


GATE = {
    "time_us": NOW,
    "candidate": "new",
    "baseline": "old",
    "policy": "gate.toml",
    "verdict": "fail",
    "source": "command",
    "person": "ann",
    "commit": None,
    "content": {"checks": []},
}
ALERT = {
    "cause": "CTR",
    "opened_us": NOW,
    "onset_us": NOW - 5,
    "seen_us": NOW,
    "closed_us": None,
    "content": {},
}
ACKNOWLEDGED = {
    "time_us": NOW,
    "person": "ann",
    "action": "acknowledged",
    "until_us": None,
    "note": "",
}


def test_results_of_gates_are_listed_newest_first(c: sa.Connection) -> None:
    shop = declared(c)
    first = gates.add(c, shop, GATE)
    second = gates.add(c, shop, GATE | {"time_us": NOW + 1, "verdict": "pass"})
    assert [row["id"] for row in gates.listed(c, shop)] == [second, first]
    found = gates.find(c, first)
    assert found is not None
    assert found["content"] == {"checks": []}
    assert gates.find(c, second + 1) is None


def test_a_part_of_a_content_is_read_alone(c: sa.Connection) -> None:
    shop = declared(c)
    content = {"gate": {"checks": [{"rule": "é", "n": 3}], "none": None}}
    first = gates.add(c, shop, GATE | {"content": content})
    second = gates.add(c, shop, GATE)
    both = [first, second]
    assert gates.parts(c, both, "gate", "checks", 0) == {first: {"rule": "é", "n": 3}, second: None}
    assert gates.parts(c, both, "checks") == {first: None, second: []}
    assert gates.parts(c, [], "checks") == {}


def test_releases_have_an_opening(c: sa.Connection) -> None:
    for at, name in enumerate(("first", "last")):
        releases.append(c, name, 1, at_us=at, kind="started", content={"by": name})
        releases.append(c, name, 2, at_us=at, kind="advanced", content={})
    assert list(releases.openings(c).items()) == [
        ("last", {"by": "last"}),
        ("first", {"by": "first"}),
    ]


def test_alerts_last_until_they_are_closed(c: sa.Connection) -> None:
    older, newer = alerts.add(c, ALERT), alerts.add(c, ALERT | {"onset_us": NOW})
    alerts.change(c, older, closed_us=NOW + 7)
    assert [row["id"] for row in alerts.still_open(c)] == [newer]
    assert [row["id"] for row in alerts.listed(c)] == [newer, older]
    assert [row["id"] for row in alerts.since(c, NOW + 7)] == [older, newer]
    assert [row["id"] for row in alerts.since(c, NOW + 8)] == [newer]
    alerts.hold(c)
    alerts.act(c, newer, ACKNOWLEDGED)
    alerts.act(c, newer, ACKNOWLEDGED | {"action": "muted", "until_us": NOW + 9})
    assert [row["action"] for row in alerts.actions(c, [newer])] == ["acknowledged", "muted"]
    assert alerts.actions(c, [older]) == []


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("verb", ["update", "delete"])
def test_what_was_judged_or_frozen_is_never_changed(store: Store, table: str, verb: str) -> None:
    with store.begin() as c:
        shop = declared(c)
        pairs.put(c, shop, POOL, 2, NOW)
        judge(c, shop, "ann")
        frozen = POOL.with_columns(grade=1.0)
        editions.freeze(
            c,
            shop,
            name="e",
            sha256="0",
            about={},
            queries=queries.frame(c, shop),
            grades=frozen,
            now=NOW,
        )
        audit.note(c, "ann", "freeze edition", "e", NOW)
        releases.append(c, "r", 1, at_us=NOW, kind="started", content={})
        gates.add(c, shop, GATE)
        alerts.act(c, alerts.add(c, ALERT), ACKNOWLEDGED)
    chosen = METADATA.tables[table]
    column = list(chosen.c)[-1]
    change = sa.delete(chosen) if verb == "delete" else sa.update(chosen).values({column: None})
    with pytest.raises(KaratError, match=r"rejected a change.*append-only"), store.begin() as c:
        c.execute(change)
    with store.read() as c:
        assert c.execute(sa.select(sa.func.count()).select_from(chosen)).scalar_one() >= 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"grade": None},
        {"state": "withdrawn"},
        {"state": "cannot_judge"},
        {"state": "unsure", "grade": None},
        {"kind": "guess"},
        {"source": "hearsay"},
        {"golden_set_id": 99},
        {"supersedes": 99},
    ],
)
def test_the_database_itself_refuses_a_fact_that_cannot_be(
    store: Store, wrong: dict[str, object]
) -> None:
    with store.begin() as c:
        fact = {
            "golden_set_id": declared(c),
            "query_id": "q1",
            "doc_id": "d1",
            "grade": 1.0,
            "state": "graded",
            "rater": "ann",
            "source": "human",
            "kind": "rating",
            "time_us": NOW,
        }
        c.execute(sa.insert(METADATA.tables["judgment"]).values(fact))
    with pytest.raises(KaratError, match="rejected a change") as told, store.begin() as c:
        c.execute(sa.insert(METADATA.tables["judgment"]).values({**fact, **wrong}))
    assert isinstance(told.value.__cause__, sa.exc.IntegrityError)
    assert len(str(told.value).splitlines()) == 2, "the row is not quoted"


def half_an_import(store: Store, shop: int) -> None:
    """Everything of an import, in one transaction; its last part is wrong."""
    with store.begin() as c:
        pairs.put(c, shop, POOL, 2, NOW)
        imports.put(c, shop, file="a", format="csv", sha256="0", report={}, now=NOW)
        pairs.put(c, shop, pl.concat([POOL, POOL]), 2, NOW)


@ON_BOTH
def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    with store.begin() as c:
        shop = declared(c)
    with pytest.raises(InputError, match="duplicate pair"):
        half_an_import(store, shop)
    with store.read() as c:
        assert pairs.frame(c, shop).is_empty()
        assert c.execute(sa.select(imported)).all() == []


@ON_BOTH
def test_a_text_with_nul_is_refused(c: sa.Connection) -> None:
    set_id = declared(c)
    with pytest.raises(InputError, match="NUL"):
        documents.put(c, set_id, pl.DataFrame({"doc_id": ["d"], "text": ["a\0b"]}), NOW)
