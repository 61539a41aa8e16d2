"""Cards: whose words are marked, what becomes a link or a picture, and what a ticket proves."""

from __future__ import annotations

import dataclasses
import html
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.golden.queue import REASONS, Claim
from karat.tables.golden.golden_sets import GoldenSetRow
from karat.tables.workspace import Card as Fields
from karat.tables.workspace import WorkspaceConfig
from karat.web.judging.cards import (
    FIRST,
    Ticket,
    grades_of,
    guideline_blocks,
    marked,
    reasons,
    safe_image,
    safe_link,
    shown,
    words_of,
)
from karat.workflows.judging.queue import Card

OURS = "https://karat.example.org"


def hits(text: str, query: str) -> list[str]:
    return [piece for piece, hit in marked(text, words_of(query)) if hit]


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("red shoes", "Red SHOES, shoe-horns and redder shoes", ["Red", "SHOES", "shoes"]),
        ("cafe", "Café, cafe\u0301, cafes", ["Café", "cafe\u0301"]),
        ("CAFÉ", "cafe", ["cafe"]),
        ("straße", "STRASSE und Straße", ["STRASSE", "Straße"]),
        ("itertools.groupby", "groupby of itertools; groupbys", ["groupby", "itertools"]),
        ("हिन्दी", "यह हिन्दी है", ["हिन्दी"]),
        ("c++", "C and c++", ["C", "c"]),
        ("?!", "?!", []),
        ("", "anything", []),
    ],
)
def test_whole_words_are_marked_whatever_their_case_and_accents(
    query: str, text: str, found: list[str]
) -> None:
    assert hits(text, query) == found


@given(st.text(), st.text())
def test_marking_loses_no_character(text: str, query: str) -> None:
    pieces = marked(text, words_of(query))
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)


@given(st.text(min_size=1))
def test_a_text_s_own_words_are_marked_in_it(text: str) -> None:
    said = [piece for piece, hit in marked(text, words_of(text)) if not hit]
    assert not any(each.isalnum() for piece in said for each in piece)


@pytest.mark.parametrize(
    "address", ["https://a.org/b?c=1&d=%22", "HTTP://a.org", "http://[::1]:8/"]
)
def test_an_address_of_the_web_is_a_link(address: str) -> None:
    assert safe_link(address) == address


NO_LINKS = [
    None,
    "",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "java\tscript://a.org/%0aalert(1)",
    "\x01javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "ftp://a.org/",
    "//a.org/",
    "/b",
    "http:",
    "http://",
    "http://a.org\\@b.org/",
    "https://bank.example.org@evil.example.org/",
    "http://a.org:port/",
    "http://[::1/",
    "http://a.org/\u202egpj.exe",
]


@pytest.mark.parametrize("address", NO_LINKS)
def test_no_other_address_is_a_link(address: str | None) -> None:
    assert safe_link(address) is None


@given(st.text())
def test_a_link_begins_as_links_do(address: str) -> None:
    assert (safe_link(address) or "http://").lower().startswith(("http://", "https://"))


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("https://cdn.example.org/a.png", True),
        ("https://cdn.example.org:443/a.png", True),
        (f"{OURS}/a.png", True),
        ("data:image/png;base64,iVBORw0KGgo=", True),
        ("http://cdn.example.org/a.png", False),
        ("https://cdn.example.org:8443/a.png", False),
        ("https://cdn.example.org.evil.org/a.png", False),
        ("https://x@cdn.example.org/a.png", False),
        ("//cdn.example.org/a.png", False),
        ("data:text/html;base64,PHNjcmlwdD4=", False),
        ("data:image/svg+xml;base64,PHN2Zz4=", False),
        ("javascript:alert(1)", False),
        (None, False),
    ],
)
def test_a_picture_comes_from_an_origin_that_is_allowed(address: str | None, *, good: bool) -> None:
    assert (safe_image(address, (OURS, "https://cdn.example.org")) is not None) == good


def a_card(**changed: object) -> Card:
    claim = Claim(
        slot_id=7,
        kind="repeat",
        query_id="q1",
        doc_id="d1",
        leased_until_us=0,
        query_text="red shoes",
        need=None,
        title=None,
        text="Red shoes.",
        url="javascript:alert(1)",
        document_sha256="0" * 64,
        guideline="1",
        guideline_text="",
        attributes={"price": 9.5, "sizes": [38, 39], "picture": "https://cdn.example.org/a.png"},
    )
    return Card(dataclasses.replace(claim, **changed), [], "token")  # type: ignore[arg-type]


def test_the_workspace_says_what_is_on_a_card(tmp_path: Path) -> None:
    fields = Fields(image="picture", more=("price", "sizes", "none"))
    origins = ("https://cdn.example.org",)
    workspace = WorkspaceConfig(tmp_path, "sqlite:///x", tmp_path, card=fields, images=origins)
    found = shown(a_card(), workspace, OURS, "ticket")
    assert found.title == [("d1", False)]  # its id, for want of a title
    assert found.body == [("Red", True), (" ", False), ("shoes", True), (".", False)]
    assert found.more == [("price", "9.5"), ("sizes", "38, 39")]
    assert found.image == "https://cdn.example.org/a.png"
    assert (found.link, found.address) == (None, "javascript:alert(1)")
    bare = shown(a_card(), dataclasses.replace(workspace, card=Fields(), images=()), OURS, "t")
    assert (bare.image, list(bare.more)) == (None, [])


def test_a_card_says_nothing_of_its_kind(tmp_path: Path) -> None:
    workspace = WorkspaceConfig(tmp_path, "sqlite:///x", tmp_path)
    cards = [shown(a_card(kind=kind), workspace, OURS, "") for kind in ("rating", "repeat", "gold")]
    assert cards[0] == cards[1] == cards[2]


def test_a_long_text_is_cut_between_words_and_goes_on_elsewhere(tmp_path: Path) -> None:
    workspace = WorkspaceConfig(tmp_path, "sqlite:///x", tmp_path)
    for text in ("word " * 5000, "x" * 40_000, "a line\n" * 4000):
        found = shown(a_card(text=text), workspace, OURS, "")
        body, rest = ("".join(p for p, _ in each) for each in (found.body, found.rest))
        assert body + rest == text.strip()
        assert 0 < len(body) <= FIRST + 1
        assert body[-1].isspace() or not any(map(str.isspace, text))
    short = shown(a_card(text="word " * (FIRST // 5)), workspace, OURS, "")
    assert not short.rest


def test_a_ticket_is_what_was_sealed_and_good_for_nothing_else() -> None:
    ticket = Ticket("ab", "2", 1_000_000, 7, "token", "cd")
    text = ticket.seal("secret", 1, "ann", "rating")
    assert Ticket.unseal(text, "secret", 1, "ann", "rating") == ticket
    for about in ((1, "ben", "rating"), (2, "ann", "rating"), (1, "ann", "adjudication")):
        assert Ticket.unseal(text, "secret", *about) is None
    assert Ticket.unseal(text, "another", 1, "ann", "rating") is None
    for wrong in ("", ".", "zz", text[:-3], f"{text}AAAA", text[4:], html.escape('"') + text):
        assert Ticket.unseal(wrong, "secret", 1, "ann", "rating") is None


def test_a_ticket_tells_no_slot_by_what_it_says_or_how_long_it_is() -> None:
    held = [Ticket("ab", "2", 1_000_000, slot, "t", "cd") for slot in (1, 2365, 2**63 - 1)]
    sealed = [ticket.seal("secret", "ann") for ticket in held]
    assert len({len(text) for text in sealed}) == 1
    assert [Ticket.unseal(text, "secret", "ann") for text in sealed] == held


@pytest.mark.parametrize(
    ("now_s", "said", "seconds"),
    [
        (11, None, 10),  # by our own clock
        (11, 4.26, 4.3),  # the page was hidden for the rest
        (11, 10.9, 10.9),  # two clocks
        (11, 500.0, 10),  # longer than it was out
        (11, -1.0, 10),
        (11, float("nan"), 10),
        (1 + 2 * 86_400, None, None),  # left open over the week-end
        (1 + 2 * 86_400, 30.0, 30),
        (0, None, None),  # a clock that was put back
    ],
)
def test_the_time_is_the_browser_s_if_it_can_be(
    now_s: int, said: float | None, seconds: float | None
) -> None:
    ticket = Ticket(None, None, 1_000_000, 7, "token", "cd")
    assert ticket.seconds(now_s * 1_000_000, said) == seconds


def golden(grades: dict[float, str], scale: tuple[float, float] = (0, 3)) -> GoldenSetRow:
    return GoldenSetRow(1, "shop", scale, grades, 2, 0.05, "salt", "1", "", 0)


def test_a_grade_has_its_digit_a_word_and_a_sign() -> None:
    two = grades_of(golden({0.0: "No: something else", 1.0: "Yes"}))
    assert [(g.key, g.word, g.sign) for g in two] == [
        ("0", "No", "something else"),
        ("1", "Yes", ""),
    ]
    half = grades_of(golden({0.0: "", 0.5: "", 1.0: ""}))
    assert [g.key for g in half] == ["1", "2", "3"]  # by place: 0.5 is no key
    many = grades_of(golden({}, (0, 10)))
    assert [g.key for g in many] == [str(n) for n in range(1, 10)] + [None, None]
    assert [g.value for g in many] == list(range(11))
    assert [code for _, code, _ in reasons()] == list(REASONS)


def test_a_guideline_is_read_as_guidelines_are_written() -> None:
    text = "# Guide\nJudge **it**\nalone.\n\n- **0** no\n  at all\n- 1 `yes`\n2. second\n<b>x</b>"
    blocks = guideline_blocks(text)
    assert [(b.kind, "".join(p for p, _ in b.pieces)) for b in blocks] == [
        ("heading", "Guide"),
        ("text", "Judge it alone."),
        ("item", "0 no at all"),
        ("item", "1 yes"),
        ("item", "2. second <b>x</b>"),
    ]
    assert blocks[2].pieces[0] == ("0", True)
    assert guideline_blocks("") == []
