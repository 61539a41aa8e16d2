from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.golden.pii import KINDS, find, is_product_number, masked

# Numbers that issuers publish for tests: cards of the payment networks, and the IBANs of the
# examples in the ISO 13616 registry.
PERSONAL = {
    "reset password anna.b+shop@firma.example": "reset password <email>",
    "müller@bücher.example": "<email>",
    "4111 1111 1111 1111": "<card>",
    "card 5555555555554444 declined": "card <card> declined",
    "378282246310005": "<card>",
    "4111-1111-1111-1111": "<card>",
    "DE89 3704 0044 0532 0130 00": "<iban>",
    "transfer gb29nwbk60161331926819 today": "transfer <iban> today",
    "NO9386011117947 bank": "<iban> bank",
    "who is +49 171 1234567": "who is <phone>",
    "0044 20 7946 0000": "<phone>",
    "(555) 123-4567": "<phone>",
    "555-123-4567": "<phone>",
    "030/1234567": "<phone>",
    "01711234567": "<phone>",
    "order 1234567890": "order <number>",
    "123-45-6789": "<number>",
    "a@b.example 4111111111111111": "<email> <card>",
}


@pytest.mark.parametrize("text", PERSONAL)
def test_what_is_personal_is_masked_by_its_kind(text: str) -> None:
    assert masked(text) == PERSONAL[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "red shoes",
        "@home",
        "c++ a@b",
        "978-3-16-148410-0",  # the ISBN of the ISO 2108 examples
        "9783161484100",
        "isbn 0306406152",  # ISBN-10: 0 3 0 6 4 0 6 1 5 with check digit 2
        "4006381333931",  # the EAN-13 of Wikipedia's article
        "036000291452",  # its UPC-A
        "iphone 15 pro max 256gb",
        "wh-1000xm5",
        "06h-1155-0021",
        "rtx 4090 vs 3080",
        "tax return 2023 2024",
        "2019-2024",
        "2024-01-31",
        "31.12.2024 18:00",
        "price 1.299.000,00",
        "$1,299.99",
        "3.14159265358979",
        "10 x 20 x 30 cm",
        "192.168.100.200",
        "1 2 3 4 5 6 7 8 9",
        "b08n5wrwnw",
        "din en 60335",
        "4111111111111112x",  # part of a word
    ],
)
def test_products_prices_and_years_are_left_alone(text: str) -> None:
    assert find(text) == ()
    assert masked(text) == text


def test_a_wrong_check_digit_is_no_card_and_no_iban() -> None:
    # One digit changed: still a long number, but no card, and an IBAN that is none is only letters.
    assert [each.kind for each in find("4111111111111112")] == ["number"]
    assert find("de88370400440532013000") == ()


def test_places_are_those_of_the_text() -> None:
    text = "x anna@firma.example y +49 171 1234567"
    assert [(each.kind, text[each.start : each.end]) for each in find(text)] == [
        ("email", "anna@firma.example"),
        ("phone", "+49 171 1234567"),
    ]


def test_check_digits_of_products() -> None:
    # EAN-8 9638507: 3(9+3+5+7) + (6+8+0) = 72 + 14 = 86, so the check digit is 4.
    assert is_product_number("96385074")
    assert not is_product_number("96385075")
    assert not is_product_number("123456789")


@given(st.text(alphabet="0123456789 @.-+()/abcDE", max_size=60))
def test_masking_twice_masks_no_more_of_a_kind_and_never_fails(text: str) -> None:
    found = find(text)
    assert all(each.kind in KINDS and 0 <= each.start < each.end <= len(text) for each in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert masked(text).count("<") == text.count("<") + len(found)


@given(st.text(alphabet="ab@.-'é ", max_size=30))
def test_addresses_are_those_of_one_pattern(text: str) -> None:
    # The plain pattern, which takes the square of the letters of a long word.
    plain = re.compile(r"[\w.+%'-]+@[\w-]+(?:\.[\w-]+)+")
    found = [(each.start, each.end) for each in find(text) if each.kind == "email"]
    assert found == [match.span() for match in plain.finditer(text)]


def test_a_word_of_a_million_letters_is_searched() -> None:
    assert find("a" * 1_000_000 + "@") == ()
