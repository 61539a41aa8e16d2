from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import InputError, UsageError
from karat.golden.traffic import clean, folded, with_bands


def log(**columns: list[object]) -> pl.DataFrame:
    return pl.DataFrame(columns, strict=False)


def test_spellings_of_a_query_are_one_shown_as_most_spelt_it() -> None:
    done = clean(
        log(
            text=["Red  Shoes", "red shoes ", "RED SHOES", "caf\u00e9", "cafe\u0301", "a\x00b"],
            count=[2, 5, 1, 1, 3, 1],
        )
    )
    # 2 + 5 + 1 = 8 searches, 5 of which were "red shoes"; both forms of é are one.
    assert done.frame.select("text", "key", "count", "spellings").rows() == [
        ("red shoes", "red shoes", 8, 3),
        ("caf\u00e9", "caf\u00e9", 4, 1),
        ("a b", "a b", 1, 1),
    ]
    assert (done.rows, done.searches, done.merged, done.control) == (6, 13, 2, 1)


def test_letters_that_look_otherwise_alone_are_the_same() -> None:
    """Widths, ligatures and spaces (UAX 44, tags of decompositions), shown as logged most."""
    texts = [
        "\uff35\uff33\uff22\u3000cable",
        "usb cable",
        "\ufb01lm",
        "FILM",
        "m\u00b2",
        "\uff76\uff9e",
    ]
    done = clean(log(text=texts, count=[5, 2, 4, 1, 3, 1]))
    assert done.frame.select("text", "key", "count", "spellings").rows() == [
        ("\uff35\uff33\uff22 cable", "usb cable", 7, 2),
        ("\ufb01lm", "film", 5, 2),
        ("m\u00b2", "m\u00b2", 3, 1),
        ("\uff76\uff9e", "\u30ac", 1, 1),
    ]
    # What is raised, lowered, a fraction or in a circle says something else.
    others = [
        "10\u2075 Pa",
        "105 Pa",
        "2\u00bd kg",
        "21\u20442 kg",
        "h\u2082o",
        "h2o",
        "\u2460",
        "1",
    ]
    assert folded(others) == [text.lower() for text in others]
    # Not a superscript: a no-break space, a narrow one, dots that are one sign, a letter in bold.
    assert folded(["5\u00a0kg", "5\u202fkg", "a\u2026", "\U0001d400"]) == [
        "5 kg",
        "5 kg",
        "a...",
        "a",
    ]
    # What is folded to capitals or spaces is folded on: TEL, and an accent upon a space.
    assert folded(["\u2121", "a \u00b4"]) == ["tel", "a \u0301"]


def test_rows_without_counts_are_a_search_each() -> None:
    done = clean(log(text=["a", "b", "a", None, "  "]))
    assert done.frame.select("text", "count").rows() == [("a", 2), ("b", 1)]
    assert (done.searches, done.empty) == (5, 2)


def test_robots_are_dropped_where_the_log_tells() -> None:
    flagged = clean(log(text=["a", "b", "b"], count=[1, 2, 4], is_bot=["no", "TRUE", None]))
    assert flagged.frame.select("text", "count").rows() == [("b", 4), ("a", 1)]
    assert (flagged.bots, flagged.told_bots_by) == (2, ("is_bot",))
    agents = ["Mozilla/5.0 (X11) Firefox/130", "Mozilla/5.0 (compatible; Googlebot/2.1)", "curl/8"]
    told = clean(log(text=["a", "b", "c"], **{"User-Agent": agents}))
    assert told.frame["text"].to_list() == ["a"]
    assert told.notes == ()
    assert "User-Agent" not in told.frame.columns
    assert told.left_out == ("User-Agent",)


def test_a_log_that_cannot_tell_says_so() -> None:
    done = clean(log(text=["a", "b"]))
    assert done.told_bots_by == ()
    assert done.notes == (
        "No bots were removed: the log has no column that marks them (is_bot, user_agent).",
    )


def test_an_absurd_share_is_said_and_not_dropped() -> None:
    texts = [*"bcdefghij", "a"]
    done = clean(log(text=texts, count=[1] * 9 + [91], client=[*"123456789", "x"]))
    assert done.frame["count"][0] == 91
    assert "'a', is 91%" in done.notes[2]
    assert "client made 91%" in done.notes[1]


def test_attributes_are_the_most_searched_and_columns_of_searches_are_left_out() -> None:
    done = clean(
        log(
            text=["a", "A", "b"],
            count=[1, 3, 1],
            country=["de", "at", None],
            session_id=["1", "2", "3"],
            timestamp=[1, 2, 3],
        )
    )
    assert done.frame.select("text", "country").rows() == [("A", "at"), ("b", None)]
    assert done.varying == {"country": 1}
    assert done.left_out == ("session_id", "timestamp")


def test_what_is_personal_is_marked_or_masked() -> None:
    texts = ["order of a@b.example", "Order of c@d.example", "shoes"]
    rows = log(text=texts, count=[2, 3, 1])
    marked = clean(rows)
    assert marked.personal == {"email": 2}
    assert marked.frame.select("text", "personal").rows() == [
        ("Order of c@d.example", "email"),
        ("order of a@b.example", "email"),
        ("shoes", None),
    ]
    hidden = clean(rows, mask=True)
    # Masked, the two are one query that was asked 2 + 3 times.
    assert hidden.frame.select("key", "count").rows() == [("order of <email>", 5), ("shoes", 1)]
    assert hidden.masked


def test_what_masking_makes_one_is_counted_before_it_is() -> None:
    texts = [*(f"mail {n}@b.example" for n in range(3)), "Mail 0@b.example", "shoes"]
    hidden = clean(log(text=texts, count=[1] * 5), mask=True)
    # Three queries hold one, a spelling of the first beside; masked, they are one query.
    assert hidden.personal == {"email": 3}
    assert hidden.frame.select("key", "count").rows() == [("mail <email>", 4), ("shoes", 1)]
    assert any("Masking merged 3 queries into 1" in note for note in hidden.notes)
    one = clean(log(text=["mail a@b.example", "mail <email>"]), mask=True)
    assert any("Masking merged 2 queries into 1" in note for note in one.notes)
    for done in (clean(log(text=["mail a@b.example", "shoes"]), mask=True), clean(log(text=texts))):
        assert not any("Masked" in note for note in done.notes)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="count below 0"):
        clean(log(text=["a"], count=[-1]))
    with pytest.raises(InputError, match="no query is left"):
        clean(log(text=[" "], count=[3]))
    with pytest.raises(InputError, match="'band'"):
        clean(log(text=["a"], band=["x"]))
    done = clean(log(text=["a", "b"], count=[0, 2]))
    assert (done.never, done.frame["text"].to_list()) == (1, ["b"])


def test_bands_are_shares_of_the_searches() -> None:
    counts = [30, 20, 15, 10, 10, 5, 5, 5]
    # Middles of the groups: 30: .15; 20: .40; 15: .575; the two 10s: .75; the 5s: last.
    done = with_bands(pl.DataFrame({"count": counts}))
    assert done["band"].to_list() == ["head", "torso", "torso", *["tail"] * 5]
    named = with_bands(pl.DataFrame({"count": counts}), {"top": 0.5})
    assert named["band"].to_list() == ["top", "top", *["tail"] * 6]


def test_bands_of_odd_logs() -> None:
    assert with_bands(pl.DataFrame({"count": [1, 1, 1]}))["band"].to_list() == ["all"] * 3
    # One query with nearly all searches is the head, and the least asked are the tail.
    assert with_bands(pl.DataFrame({"count": [98, 1, 1]}))["band"].to_list() == [
        "head",
        "tail",
        "tail",
    ]
    # Most were asked once: they are the tail and not, by where they begin, the torso.
    ones = with_bands(pl.DataFrame({"count": [20, 20, 10, *[1] * 50]}))["band"].to_list()
    assert ones[:4] == ["head", "head", "torso", "tail"]


@pytest.mark.parametrize("shares", [{"head": 0.5, "torso": 0.5}, {"head": 0.0}, {"tail": 0.3}])
def test_bands_that_cannot_be(shares: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        with_bands(pl.DataFrame({"count": [2, 1]}), shares)


@FEW
@given(st.text(max_size=30))
@example("0 \u200b 0")
@example("e\u200b\u0301")
@example("\u03d2 \u0301\u00a8\u0301\u2121")
def test_folding_twice_is_folding_once(text: str) -> None:
    (once,) = folded([text])
    assert folded([once]) == [once]
    assert folded([f"  {text}\t "]) == [once]


@FEW
@given(st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_bands_keep_order_and_equals_together(counts: list[int]) -> None:
    done = with_bands(pl.DataFrame({"count": sorted(counts, reverse=True)}))
    names = done["band"].unique(maintain_order=True).to_list()
    assert names == [name for name in ("head", "torso", "tail", "all") if name in names]
    assert done.group_by("count").agg(pl.col("band").n_unique())["band"].max() == 1
