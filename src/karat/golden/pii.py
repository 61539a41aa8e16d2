"""Personal data in queries: e-mail addresses, phone, card and account numbers.

Patterns find candidates, and check digits confirm them where there are any: ISBNs, bar codes,
prices and years are not reported. Names are not detected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

KINDS = ("email", "iban", "card", "phone", "number")
"""Kinds, in the order in which they are tried: the first that fits is reported."""

PERHAPS = r"@|\d(?:\D{0,3}\d){6}|\b[A-Za-z]{2}\d{2} ?[A-Za-z0-9]"
"""A text without this pattern has no personal data: a quick check that most queries fail."""
_PERHAPS = re.compile(PERHAPS)
_LOCAL = re.compile(r"[\w.+%'-]")
_DOMAIN = re.compile(r"@[\w-]+(?:\.[\w-]+)+")
_IBAN = re.compile(r"(?<!\w)[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,30}")
_DIGITS = re.compile(r"(?<![\w.,])\d(?:[ -]?\d){11,18}(?![\w])")
_PHONE = re.compile(
    r"(?<![\w.,+])(?:"
    r"(?:\+|00)[1-9](?:[ ()./-]{0,3}\d){6,13}"  # +49 171 1234567, 0044 20 7946 0000
    r"|\(0?\d{2,5}\)[ /-]?\d(?:[ -]?\d){4,8}"  # (030) 123456, (555) 123-4567
    r"|\d{3}[ .-]\d{3}[ .-]\d{4}"  # 555-123-4567
    r"|0\d{2,4}[ /-]{1,3}\d(?:[ -]?\d){4,8}"  # 0171 1234567, 030/123456
    r"|0\d{9,10}"  # 01711234567
    r")(?![\w])"
)
_NUMBER = re.compile(r"(?<![\w.,+])(?:\d{9,}|\d{3}-\d{2}-\d{4})(?![\w])")

# Issuers' first digits and the lengths of their numbers (ISO/IEC 7812 ranges in common use).
_CARDS = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"30[0-5]|36|38|39"), (14, 16)),
    (re.compile(r"6011|64[4-9]|65|62|35(?:2[89]|[3-8])"), (16, 17, 18, 19)),
    (re.compile(r"50|5[6-8]|63|67"), (12, 13, 14, 15, 16, 17, 18, 19)),
)
_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "PT",
    26: "IS TR",
    27: "BI FR GR IT MC MR SM",
    28: "AL AZ CY DO GT HU LB PL SV",
    29: "BR PS QA UA",
    30: "JO KW",
    31: "MT",
}
"""Length of an IBAN to its countries (ISO 13616 registry)."""
_IBANS = {code: length for length, codes in _COUNTRIES.items() for code in codes.split()}


@dataclass(frozen=True, slots=True)
class Found:
    """Personal data in a text."""

    kind: str  # one of `KINDS`
    start: int  # first character, from 0
    end: int  # character after the last one


def find(text: str) -> tuple[Found, ...]:
    """Personal data in a text, in order of position; no two overlap."""
    if not _PERHAPS.search(text):
        return ()
    found: list[Found] = []
    for kind, search in _SEARCHES:
        for start, end in search(text):
            if all(end <= other.start or other.end <= start for other in found):
                found.append(Found(kind, start, end))
    return tuple(sorted(found, key=lambda each: each.start))


def masked(text: str) -> str:
    """The text with each piece replaced by its kind, as in ``<email> password``."""
    for each in reversed(find(text)):
        text = f"{text[: each.start]}<{each.kind}>{text[each.end :]}"
    return text


def is_product_number(digits: str) -> bool:
    """Whether digits are an ISBN or a bar code, by length and check digit.

    Source: ISO 2108 (ISBN-10), GS1 General Specifications 7.9.1 (GTIN-8, -12, -13, -14; an ISBN-13
    is one of these).
    """
    if len(digits) == 10:
        return sum(place * int(digit) for place, digit in enumerate(digits[::-1], 1)) % 11 == 0
    if len(digits) not in (8, 12, 13, 14):
        return False
    odd, even = (sum(int(digit) for digit in digits[::-1][start::2]) for start in (0, 1))
    return (odd + 3 * even) % 10 == 0


def _emails(text: str) -> Iterator[tuple[int, int]]:
    # From the @ outwards: a single pattern would try each letter of a long word as the first.
    end = 0
    for match in _DOMAIN.finditer(text):
        start = match.start()
        while start > end and _LOCAL.match(text, start - 1):
            start -= 1
        if start < match.start():
            end = match.end()
            yield start, end


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    for match in _IBAN.finditer(text):
        length = _IBANS.get(match[0][:2].upper())
        if length is None:
            continue
        # The pattern may run into the next words: cut it at the country's length.
        ends = [i for i, sign in enumerate(match[0], 1) if sign != " "]
        if len(ends) < length:
            continue
        end = match.start() + ends[length - 1]
        if text[end : end + 1].isalnum():
            continue
        code = text[match.start() : end].replace(" ", "").upper()
        if int("".join(str(int(sign, 36)) for sign in code[4:] + code[:4])) % 97 == 1:
            yield match.start(), end


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for match in _DIGITS.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(digits) < 15 and is_product_number(digits):
            continue
        issued = any(head.match(digits) and len(digits) in sizes for head, sizes in _CARDS)
        if issued and _luhn(digits):
            yield match.span()


def _luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B."""
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(digits[::-1])]
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def _phones(text: str) -> Iterator[tuple[int, int]]:
    for match in _PHONE.finditer(text):
        if not (match[0].isdigit() and is_product_number(match[0])):
            yield match.span()


def _numbers(text: str) -> Iterator[tuple[int, int]]:
    for match in _NUMBER.finditer(text):
        if not is_product_number(match[0].replace("-", "")):
            yield match.span()


_SEARCHES: tuple[tuple[str, Callable[[str], Iterator[tuple[int, int]]]], ...] = tuple(
    zip(KINDS, (_emails, _ibans, _cards, _phones, _numbers), strict=True)
)
