"""Ways of damaging a file, by a seed."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable

TOKENS = (
    b"NaN", b"-1", b"1e999", b"-0", b"9" * 25, b"9" * 5000, b"null", b"true", b"{}", b"[]", b'""',
    b'"', b"'", b"\\", b"\\ud800", b"\\u0000", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85",
    b"\x00", b"\r", b"\r\r\n", b"\n", b"\n\n", b"\t", b" ", b",", b";", b"#", b"=", b"[" * 2000,
    b"{\"a\":" * 2000, b"0x1F", b"1_0", "１".encode(), b"\xff", b"\xed\xa0\x80", b"../../x", b"Q0",
)  # fmt: skip


def mutate(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A damaged copy, and how it was damaged."""
    how = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(MUTATIONS))
        data = MUTATIONS[name](data, rng)
        how.append(name)
    return data, ", ".join(how)


def _at(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


def _flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _flip_late(data: bytes, rng: random.Random) -> bytes:
    """In the last 600 bytes, where Parquet and ZIP have what describes the rest."""
    start = max(0, len(data) - 600)
    return data[:start] + _flip(data[start:], rng)


def _put(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + rng.choice(TOKENS) + data[at + rng.choice((0, 0, 1, 4)) :]


def _number(data: bytes, rng: random.Random) -> bytes:
    places = list(re.finditer(rb"\d+(\.\d+)?", data))
    if not places:
        return data
    place = rng.choice(places)
    return data[: place.start()] + rng.choice(TOKENS) + data[place.end() :]


def _delete(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + data[at + rng.choice((1, 2, 8, 64)) :]


def _again(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    size = rng.choice((1, 8, 64))
    return data[: at + size] + data[at:]


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 1:
        lines.insert(b, lines[a])
    elif kind == 2:
        del lines[a]
    elif a + 1 < len(lines):
        lines[a : a + 2] = [lines[a] + rng.choice((b"", b" ", b"\t", b"\r", b",")) + lines[a + 1]]
    return b"\n".join(lines)


MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip": _flip,
    "flip late": _flip_late,
    "put": _put,
    "number": _number,
    "delete": _delete,
    "again": _again,
    "lines": _lines,
    "cut": lambda data, rng: data[: _at(data, rng)],
    "recode": lambda data, rng: (
        data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-8-sig")))
        if rng.random() < 0.5
        else gzip.compress(data)[: rng.choice((None, -5, 12))]
    ),
    "keys": lambda data, rng: data.replace(
        rng.choice((b"query", b"doc", b"score", b"grade", b"rule", b"[", b"}", b":", b'"', b"1")),
        rng.choice((b"", b"x", *TOKENS)),
        rng.choice((1, 2, -1)),
    ),
}
