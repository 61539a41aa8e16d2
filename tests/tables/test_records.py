"""Records from their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pytest

from karat.tables.records import record_of, shared


@dataclass(frozen=True)
class Part:
    name: str
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Whole:
    name: str
    one: Part
    maybe: Part | None = None
    rows: Sequence[Part] = field(default_factory=list)
    tuples: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict)
    lists: Mapping[str, Sequence[Part]] = field(default_factory=dict)
    pairs: Sequence[tuple[str, int]] = field(default_factory=list)
    plain: Mapping[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return 3


WHOLE = Whole(
    "w",
    Part("a", (0.5, 1.5)),
    Part("b"),
    [Part("c", (1.0, 2.0)), Part("d")],
    (Part("e"),),
    {"f": Part("f", (3.0, 4.0))},
    {"g": [Part("g")], "none": []},
    [("h", 1)],
    {"i": 0.25},
)


def test_a_record_is_the_same_after_json() -> None:
    assert record_of(Whole, json.loads(json.dumps(asdict(WHOLE)))) == WHOLE
    empty = Whole("w", Part("a"))
    assert record_of(Whole, asdict(empty)) == empty


def test_what_a_property_computes_is_left_out() -> None:
    content = {**asdict(WHOLE), "exit_code": 3}
    assert record_of(Whole, content) == WHOLE


def test_defaults_stand_for_what_older_json_does_not_have() -> None:
    assert record_of(Whole, {"name": "w", "one": {"name": "a"}}) == Whole("w", Part("a"))


@pytest.mark.parametrize("wrong", [{"name": "a", "size": 1}, {}])
def test_unknown_and_missing_fields_are_refused(wrong: Mapping[str, object]) -> None:
    with pytest.raises(TypeError):
        record_of(Part, wrong)
    with pytest.raises(TypeError):
        record_of(Whole, {"name": "w", "one": wrong})


def test_shared_takes_the_fields_of_both() -> None:
    assert shared(WHOLE, Part) == {"name": "w"}
