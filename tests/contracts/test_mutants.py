"""Damaged files through every entry point; ``benchmarks/fuzz.py`` has thousands of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.mutants import SEEDS, World

from karat.formats import FORMATS

MUTANTS, DEEP_MUTANTS = 20, 600


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Sound files of every kind, and a workspace that takes uploads."""
    with World(tmp_path_factory.mktemp("mutants") / "world") as made:
        yield made


def test_every_format_has_a_sound_file() -> None:
    readers = " ".join(seed.reader for seed in SEEDS).casefold()
    spelt = {"msmarco": "ms marco", "json": "nested json"}
    assert all(spelt.get(name, name) in readers for name in FORMATS)


def test_what_is_damaged_ends_in_a_documented_way(world: World, deep: bool) -> None:
    mutants = DEEP_MUTANTS if deep else MUTANTS
    wrong = [
        each
        for number in range(mutants)
        for each in world.try_one(number, every=False)
        if each["wrong"]
    ]
    assert not wrong, f"{len(wrong)} of {mutants}, such as {wrong[0]}"


def test_what_is_sound_is_taken(world: World, deep: bool) -> None:
    """Else the mutants would tell nothing: the sound files are what they should be."""
    for seed in world.seeds if deep else world.seeds[::6]:
        for told in world.try_sound(seed):
            assert told["wrong"] is None, (seed.reader, told)
            assert told["ended"] in (0, 1, 3, 200, 201), (seed.reader, told)
