"""Pictures load nothing from elsewhere, and are sound XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/images").glob("*.svg"))


@pytest.mark.parametrize("name", IMAGES)
def test_a_picture_is_sound_and_loads_nothing(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    ET.fromstring(text)
    addresses = set(re.findall(r"(?:https?:)?//[^\s\"')]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, addresses
    assert "@import" not in text
    assert "<script" not in text


def test_there_is_a_picture_of_the_demo() -> None:
    text = (ROOT / "docs/images/demo.svg").read_text(encoding="utf-8")
    assert "nDCG@10" in text
