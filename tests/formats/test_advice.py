"""Advice: each door its own words, whatever becomes of it on the way."""

from __future__ import annotations

from karat.errors import InputError
from karat.formats.advice import Advice, in_utf8, on_page


def test_each_door_says_its_own() -> None:
    advice = Advice("karat golden pool /tmp/a", page="upload /tmp/a")
    assert str(InputError("odd", fix=advice)) == "odd\n  fix: karat golden pool /tmp/a"
    assert on_page(advice) == "upload /tmp/a"
    assert on_page("keep one of them") == "keep one of them"


def test_it_speaks_of_another_name_at_both_doors() -> None:
    named = Advice("karat golden pool /tmp/a", page="upload /tmp/a").replace("/tmp/a", "mine")
    assert (named, on_page(named)) == ("karat golden pool mine", "upload mine")
    assert "iconv" not in on_page(in_utf8("a.csv"))
