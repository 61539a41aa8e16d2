"""Cards: a query and a document as a rater sees them.

A card shows only what may not bias a rater: no rank, no system, no other rater, and not whether
the pair is a repeat. All content is text; the one link and the one image are checked here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from karat.errors import UsageError
from karat.golden.queue import REASONS, Claim, pair_key
from karat.reports.judging.card import keys_of
from karat.tables.golden.golden_sets import GoldenSetRow
from karat.tables.workspace import WorkspaceConfig
from karat.web.framework import signed_values
from karat.workflows.judging.queue import Card, Judging, Vote

Pieces = Sequence[tuple[str, bool]]
"""A text in pieces; True marks words of the query."""

FIRST = 12_000
"""Characters of a document shown at first; the rest is unfolded."""
_OWN = ("title", "text", "url")
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=\s]+")
_MOST_S = 86_400


@dataclass(frozen=True)
class Grade:
    value: float
    key: str | None
    word: str
    sign: str


@dataclass(frozen=True)
class Block:
    kind: str  # ``heading`` | ``item`` | ``text``
    pieces: Pieces


@dataclass(frozen=True)
class Shown:
    query: str
    need: str | None
    title: Pieces
    body: Pieces
    rest: Pieces
    more: Sequence[tuple[str, str]]
    image: str | None
    link: str | None
    address: str | None
    votes: Sequence[Vote]
    ticket: str


def lease_card(card: Card, judging: Judging, origin: str) -> Shown:
    """A card as just leased to its rater, with a new ticket; ``origin`` as in ``shown``."""
    ticket = Ticket.of(card, judging.clock()).seal(*_good_for(judging))
    return shown(card, judging.opened.workspace, origin, ticket)


def shown(card: Card, workspace: WorkspaceConfig, origin: str, ticket: str) -> Shown:
    claim, fields = card.claim, workspace.card
    query = claim.query_text or claim.query_id
    words = words_of(query)
    text = _value(claim, fields.body) or ""
    text = text.strip().replace("\r\n", "\n").expandtabs(4)
    cut = _cut(text)
    address = _value(claim, fields.url)
    named = [(name.replace("_", " "), _value(claim, name)) for name in fields.more]
    return Shown(
        query=query,
        need=claim.need or None,
        title=marked(_value(claim, fields.title) or claim.doc_id, words),
        body=marked(text[:cut], words),
        rest=marked(text[cut:], words),
        more=[(name, value) for name, value in named if value],
        image=safe_image(_value(claim, fields.image or ""), (origin, *workspace.images)),
        link=safe_link(address),
        address=address,
        votes=card.votes,
        ticket=ticket,
    )


@dataclass(frozen=True)
class Ticket:
    """What a card showed, and when; sealed, it goes to the browser and comes back."""

    document_sha256: str | None
    guideline: str | None
    since_us: int  # when it was shown, microseconds UTC
    # Id of the slot. Raters must not see it: hidden repeats and gold items have larger ids.
    slot: int
    token: str  # id of this showing: an answer sent twice counts once
    pair: str  # from ``pair_key``: a deleted slot's id may be reused for another pair

    @classmethod
    def of(cls, card: Card, now: int) -> Ticket:
        """A new ticket for a card shown at ``now``, microseconds UTC."""
        claim = card.claim
        pair = pair_key(claim.query_id, claim.doc_id)
        return cls(claim.document_sha256, claim.guideline, now, claim.slot_id, card.token, pair)

    def seal(self, key: str, *about: object) -> str:
        """As a text that only this server can read; its length does not reveal the slot."""
        slot = f"{self.slot:020}"
        fields = [self.document_sha256, self.guideline, self.since_us, slot, self.token, self.pair]
        return signed_values.seal(json.dumps(fields).encode(), key, about)

    @classmethod
    def unseal(cls, text: str, key: str, *about: object) -> Ticket | None:
        """Parse a text made by ``seal``; None if it is invalid."""
        plain = signed_values.unseal(text, key, about)
        if plain is None:
            return None
        document, guideline, since_us, slot, token, pair = json.loads(plain)
        return cls(document, guideline, since_us, int(slot), token, pair)

    def seconds(self, now: int, reported: float | None) -> float | None:
        """How long it took: as reported if possible, else since it was shown; at most a day."""
        since = (now - self.since_us) / 1e6
        if reported is not None and 0 <= reported <= min(since + 1, _MOST_S):
            return round(reported, 1)
        return round(since, 1) if 0 <= since <= _MOST_S else None


@dataclass(frozen=True)
class Answer:
    """An answer to a card."""

    grade: float | None  # None if it cannot be judged
    cannot: str  # why not, one of ``karat.golden.queue.REASONS``; empty with a grade
    reason: str  # a comment; may be empty
    seconds: float | None  # how long it took; None if unknown
    ticket: str  # of the card


@dataclass(frozen=True)
class EntryPoint:
    """An entry point of answers (page or API), with its advice for mistakes."""

    no_answer: str
    no_ticket: str

    def ticket(self, judging: Judging, sealed: str) -> Ticket:
        ticket = Ticket.unseal(sealed, *_good_for(judging))
        if ticket is None:
            raise UsageError("the answer has an invalid ticket", fix=self.no_ticket)
        return ticket

    def record(self, judging: Judging, answer: Answer) -> int:
        """Record an answer; return the judgment's id."""
        if answer.grade is None and not answer.cannot:
            raise UsageError("the answer has neither a grade nor a reason", fix=self.no_answer)
        if answer.grade is not None and answer.cannot:
            raise UsageError(
                "the answer has both a grade and a reason why it cannot be judged", fix="send one"
            )
        reason = answer.reason.strip()
        if answer.cannot:
            reason = f"{answer.cannot}: {reason}" if reason else answer.cannot
        ticket = self.ticket(judging, answer.ticket)
        return judging.record(
            ticket.slot,
            ticket.token,
            answer.grade,
            reason or None,
            seconds=ticket.seconds(judging.clock(), answer.seconds),
            shown=ticket.document_sha256,
            guideline=ticket.guideline,
            pair_shown=ticket.pair,
        )


def grades_of(golden: GoldenSetRow) -> list[Grade]:
    """The declared scale, lowest first; every whole grade if none are declared."""
    declared: Mapping[float, str] = golden.grades
    if not declared:
        low, high = golden.scale
        declared = {float(n): "" for n in range(int(low), int(high) + 1)}
    keys = {grade: key for key, grade in keys_of(list(declared)).items()}
    out = []
    for grade, text in declared.items():
        word, _, sign = (part.strip() for part in text.partition(":"))
        word = "" if word == f"{grade:g}" else word  # from older versions
        out.append(Grade(grade, keys.get(grade), word, sign))
    return out


def reasons() -> list[tuple[str, str, str]]:
    return [(str(place), code, text) for place, (code, text) in enumerate(REASONS.items(), 1)]


def words_of(query: str) -> set[str]:
    return {_folded(each[0]) for each in _word(query).finditer(query)}


def marked(text: str, words: Iterable[str]) -> Pieces:
    """A text in pieces, with whole words of the query marked."""
    targets = set(words)
    pieces: list[tuple[str, bool]] = []
    at = 0
    for match in _word(text).finditer(text) if targets else ():
        if _folded(match[0]) in targets:
            if at < match.start():
                pieces.append((text[at : match.start()], False))
            pieces.append((match[0], True))
            at = match.end()
    if at < len(text):
        pieces.append((text[at:], False))
    return pieces


def guideline_blocks(text: str) -> list[Block]:
    """Parse the Markdown that guidelines use: headings, items, bold."""
    blocks: list[Block] = []
    kind, buffer = "text", ""
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        marker = re.match(r"(#+|[-*+]|\d+[.)])\s+(?=\S)", stripped)
        if buffer and (not stripped or marker or kind == "heading"):
            blocks.append(Block(kind, _strong(buffer)))
            buffer = ""
        if marker:
            kind = "heading" if marker[1].startswith("#") else "item"
            numbered = kind == "item" and marker[1][0].isdigit()
            buffer = stripped if numbered else stripped[marker.end() :]
        elif stripped:
            kind = kind if buffer else "text"
            buffer = f"{buffer} {stripped}".strip()
    return blocks


def safe_link(address: str | None) -> str | None:
    """The address if it is http or https with a host and no user; else None."""
    parts = _split(address)
    return address.strip() if address and parts and parts[0] in {"http", "https"} else None


def safe_image(address: str | None, origins: Iterable[str]) -> str | None:
    """The address if it is an inline image, or of an allowed origin; else None."""
    if not address:
        return None
    if _PICTURE.fullmatch(address):
        return address
    parts = _split(address)
    allowed = {found for each in origins if (found := _split(each))}
    return address.strip() if parts and parts in allowed else None


def _good_for(judging: Judging) -> tuple[str, int, str, str]:
    """The key that seals a ticket, and what it is valid for."""
    golden = judging.opened.golden
    return golden.salt, golden.id, judging.rater, judging.kind


def _split(address: str | None) -> tuple[str, str] | None:
    """Scheme, and host with port; None if invalid or with a user name."""
    text = (address or "").strip()
    # Browsers drop unprintable characters and read \ as /: they would open another address.
    if not text.isprintable() or "\\" in text or " " in text:
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or "@" in parts.netloc:
        return None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, f"{host}:{port or usual}"


def _value(claim: Claim, name: str) -> str | None:
    value = getattr(claim, name) if name in _OWN else claim.attributes.get(name)
    if value is None:
        return None
    return _words(value).strip() or None


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(each)}" for key, each in value.items())
    return str(value)


def _cut(text: str) -> int:
    """Where to fold a long text: after the last line, else word, of its first part."""
    if len(text) <= FIRST * 5 // 4:  # do not fold a few words
        return len(text)
    cut = max(text.rfind("\n", FIRST // 2, FIRST), 0) or text.rfind(" ", FIRST // 2, FIRST)
    return cut + 1 if cut > 0 else FIRST


def _word(text: str) -> re.Pattern[str]:
    """A word: letters and digits with their combining marks."""
    signs = "".join(
        re.escape(c) for c in set(text) if c > "\x7f" and unicodedata.category(c)[0] == "M"
    )
    return re.compile(rf"\w[\w{signs}]*" if signs else r"\w+")


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def _strong(text: str) -> Pieces:
    text = text.replace("`", "")
    pieces = re.split(r"\*\*(.+?)\*\*", text)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]
