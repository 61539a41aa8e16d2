"""Cards: a query and a document as a rater sees them, by the workspace's card.

Of what is stored only what a rater may know: no rank, no system, no other rater, and not whether a
pair is shown for the first time. Everything is text; the one address that becomes a link is checked
here, and so is the one that becomes a picture.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from karat.errors import UsageError
from karat.golden.queue import REASONS
from karat.reports.judging.card import keys_of
from karat.store.sql.golden_sets import GoldenSetRow
from karat.store.sql.judgments import pair_key
from karat.store.sql.queue import Claim
from karat.tables.workspace import WorkspaceConfig
from karat.web.framework import signed_values
from karat.workflows.judging.queue import Card, Judging, Vote

Pieces = Sequence[tuple[str, bool]]
"""A text in pieces, each with whether it is a word of the query."""

FIRST = 12_000
"""Characters of a document that are shown at once; the rest is one key away."""
_OWN = ("title", "text", "url")
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=\s]+")
_MOST_S = 86_400


@dataclass(frozen=True)
class Grade:
    """A grade, as a button.

    Attributes:
        value: The grade.
        key: The key that gives it; None if there are more grades than keys.
        word: What it is called.
        sign: By what it is told, in one line; empty if nothing is declared.
    """

    value: float
    key: str | None
    word: str
    sign: str


@dataclass(frozen=True)
class Block:
    """A piece of a guideline.

    Attributes:
        kind: ``heading`` | ``item`` | ``text``.
        pieces: Its text in pieces, each with whether it is strong.
    """

    kind: str
    pieces: Pieces


@dataclass(frozen=True)
class Shown:
    """What is on a card.

    Attributes:
        query: What was typed.
        need: What the person wanted; None if it is not known.
        title: Of the document, the query's words marked.
        body: How its text begins, likewise.
        rest: How it goes on; empty if that is all.
        more: Further attributes: name and value.
        image: Address of its picture; None if there is none, or it may not be shown.
        link: Where it lies, if a browser may be sent there.
        address: Where it lies, as a text.
        votes: In an adjudication what raters said, the lowest grade first; else empty.
        ticket: What was shown and when, sealed by the server.
    """

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


def dealt(card: Card, judging: Judging, origin: str) -> Shown:
    """A card as its page shows it from now on to whom it was dealt; ``origin`` as in ``shown``."""
    ticket = Ticket.of(card, judging.clock()).seal(*_good_for(judging))
    return shown(card, judging.opened.workspace, origin, ticket)


def shown(card: Card, workspace: WorkspaceConfig, origin: str, ticket: str) -> Shown:
    """A card as its page shows it.

    Args:
        card: The pair.
        workspace: Whose ``card`` says which attribute is what, and ``images`` whence pictures come.
        origin: Our own, as ``https://karat.example.org``.
        ticket: As ``Ticket.seal`` gives it.
    """
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
    """What a card showed, and when; it goes to the browser, sealed, and comes back with the answer.

    Attributes:
        document_sha256: Hash of the document as it was shown.
        guideline: Version of the guideline that was shown.
        since_us: When it was shown, microseconds UTC.
        slot: Number of the place that is judged. No rater may see it: those of hidden repeats and
            gold items are made later than the rest, and so are greater.
        token: Names this showing: what is sent twice counts once.
        pair: What was shown, as ``pair_key`` has it: a slot that went may leave another its number.
    """

    document_sha256: str | None
    guideline: str | None
    since_us: int
    slot: int
    token: str
    pair: str

    @classmethod
    def of(cls, card: Card, now: int) -> Ticket:
        """Of a card that is shown now, microseconds UTC."""
        claim = card.claim
        pair = pair_key(claim.query_id, claim.doc_id)
        return cls(claim.document_sha256, claim.guideline, now, claim.slot_id, card.token, pair)

    def seal(self, key: str, *about: object) -> str:
        """As a text that nobody else can make or read, and whose length tells no slot.

        Args:
            key: A secret of the server's.
            about: What it is good for: whose, and at which desk.
        """
        slot = f"{self.slot:020}"
        said = [self.document_sha256, self.guideline, self.since_us, slot, self.token, self.pair]
        return signed_values.seal(json.dumps(said), key, about)

    @classmethod
    def unseal(cls, text: str, key: str, *about: object) -> Ticket | None:
        """What ``seal`` made; None if it did not make this."""
        plain = signed_values.unseal(text, key, about)
        if plain is None:
            return None
        document, guideline, since_us, slot, token, pair = json.loads(plain)
        return cls(document, guideline, since_us, int(slot), token, pair)

    def seconds(self, now: int, said: float | None) -> float | None:
        """How long the judgment took.

        Args:
            now: Microseconds UTC.
            said: By the browser, which knows when its page was hidden; None if it did not say.

        Returns:
            What the browser said, unless it is impossible; else all the time since the card was
            shown; None beyond a day.
        """
        since = (now - self.since_us) / 1e6
        if said is not None and 0 <= said <= min(since + 1, _MOST_S):
            return round(said, 1)
        return round(since, 1) if 0 <= since <= _MOST_S else None


@dataclass(frozen=True)
class Door:
    """How answers come in: a page or the API, each of which has its own way out of a mistake.

    Attributes:
        no_answer: What to do where nothing is said of a card.
        no_ticket: What to do where it is not said of which.
    """

    no_answer: str
    no_ticket: str

    def ticket(self, judging: Judging, sealed: str) -> Ticket:
        """The card an answer is of.

        Raises:
            UsageError: it is a card of nobody's, of another's, or of another desk.
        """
        found = Ticket.unseal(sealed, *_good_for(judging))
        if found is None:
            raise UsageError("the answer does not say which card it is of", fix=self.no_ticket)
        return found

    def record(self, judging: Judging, said: Said) -> int:
        """Record what was said of a card; returns the judgment's number.

        Raises:
            UsageError: there is no answer, or it is two; it is of no card (``ticket``), or cannot
                be recorded (``Judging.record``).
        """
        if said.grade is None and not said.cannot:
            raise UsageError("there is no answer", fix=self.no_answer)
        if said.grade is not None and said.cannot:
            raise UsageError("there is a grade, and a reason why there can be none", fix="give one")
        reason = said.reason.strip()
        if said.cannot:
            reason = f"{said.cannot}: {reason}" if reason else said.cannot
        ticket = self.ticket(judging, said.ticket)
        return judging.record(
            ticket.slot,
            ticket.token,
            said.grade,
            reason or None,
            seconds=ticket.seconds(judging.clock(), said.seconds),
            shown=ticket.document_sha256,
            guideline=ticket.guideline,
            pair_shown=ticket.pair,
        )


class Said(Protocol):
    """What somebody says of a card."""

    @property
    def grade(self) -> float | None:
        """The grade; None if it cannot be judged."""

    @property
    def cannot(self) -> str:
        """Why it cannot be judged, one of ``karat.golden.queue.REASONS``; empty with a grade."""

    @property
    def reason(self) -> str:
        """In words; may be empty."""

    @property
    def seconds(self) -> float | None:
        """How long it took; None if that is not said."""

    @property
    def ticket(self) -> str:
        """As the card had it."""


def grades_of(golden: GoldenSetRow) -> list[Grade]:
    """The declared scale, lowest first; every whole grade where none are declared."""
    declared: Mapping[float, str] = golden.grades
    if not declared:
        low, high = golden.scale
        declared = {float(n): "" for n in range(int(low), int(high) + 1)}
    keys = {grade: key for key, grade in keys_of(list(declared)).items()}
    out = []
    for grade, text in declared.items():
        word, _, sign = (part.strip() for part in text.partition(":"))
        word = "" if word == f"{grade:g}" else word  # as golden sets of earlier days have it
        out.append(Grade(grade, keys.get(grade), word, sign))
    return out


def reasons() -> list[tuple[str, str, str]]:
    """Why a pair cannot be judged: key, code, and words."""
    return [(str(place), code, text) for place, (code, text) in enumerate(REASONS.items(), 1)]


def words_of(query: str) -> set[str]:
    """The words of a query, case and accents folded."""
    return {_folded(each[0]) for each in _word(query).finditer(query)}


def marked(text: str, words: Iterable[str]) -> Pieces:
    """A text in pieces: those that are words of a query, as a whole, and what lies between them."""
    wanted = set(words)
    pieces: list[tuple[str, bool]] = []
    at = 0
    for each in _word(text).finditer(text) if wanted else ():
        if _folded(each[0]) in wanted:
            if at < each.start():
                pieces.append((text[at : each.start()], False))
            pieces.append((each[0], True))
            at = each.end()
    if at < len(text):
        pieces.append((text[at:], False))
    return pieces


def guideline_blocks(text: str) -> list[Block]:
    """A guideline in Markdown, as far as guidelines use it: headings, items, strong words."""
    out: list[Block] = []
    kind, held = "text", ""
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        starts = re.match(r"(#+|[-*+]|\d+[.)])\s+(?=\S)", bare)
        if held and (not bare or starts or kind == "heading"):
            out.append(Block(kind, _strong(held)))
            held = ""
        if starts:
            kind = "heading" if starts[1].startswith("#") else "item"
            held = bare[starts.end() :] if kind == "heading" or not starts[1][0].isdigit() else bare
        elif bare:
            kind = kind if held else "text"
            held = f"{held} {bare}".strip()
    return out


def safe_link(address: str | None) -> str | None:
    """An address that a browser may be sent to: of ``http`` or ``https``, and of a host."""
    parts = _split(address)
    return address.strip() if address and parts and parts[0] in {"http", "https"} else None


def safe_image(address: str | None, origins: Iterable[str]) -> str | None:
    """An address that a picture may be loaded from: it is the picture, or of an origin given."""
    if not address:
        return None
    if _PICTURE.fullmatch(address):
        return address
    parts = _split(address)
    allowed = {found for each in origins if (found := _split(each))}
    return address.strip() if parts and parts in allowed else None


def _good_for(judging: Judging) -> tuple[str, int, str, str]:
    """What a ticket is sealed with: the key, and for whom and what it is good."""
    golden = judging.opened.golden
    return golden.salt, golden.id, judging.rater, judging.kind


def _split(address: str | None) -> tuple[str, str] | None:
    """Scheme, and host with port; None if it is no such address, or names a user."""
    text = (address or "").strip()
    # Browsers leave out what is not printable, and read \ as /: what they would see differs.
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
    """Where a long text is cut: behind the last line, else word, of its first part."""
    if len(text) <= FIRST * 5 // 4:  # not for a few words
        return len(text)
    found = max(text.rfind("\n", FIRST // 2, FIRST), 0) or text.rfind(" ", FIRST // 2, FIRST)
    return found + 1 if found > 0 else FIRST


def _word(text: str) -> re.Pattern[str]:
    """What a word is in a text: letters and digits, with the signs that lie on them."""
    signs = "".join(
        re.escape(c) for c in set(text) if c > "\x7f" and unicodedata.category(c)[0] == "M"
    )
    return re.compile(rf"\w[\w{signs}]*" if signs else r"\w+")


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in apart if not unicodedata.combining(c)).casefold()


def _strong(text: str) -> Pieces:
    text = text.replace("`", "")
    pieces = re.split(r"\*\*(.+?)\*\*", text)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]
