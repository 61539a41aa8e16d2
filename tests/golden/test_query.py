"""A dict that is shown, compared and copied as one, and not changed."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from karat.golden.query import Fixed


@pytest.mark.parametrize(
    "change",
    [
        lambda held: held.__setitem__("a", 2),
        lambda held: held.__delitem__("a"),
        lambda held: held.__ior__({"a": 2}),
        lambda held: held.update(a=2),
        lambda held: held.setdefault("b", 2),
        lambda held: held.pop("a"),
        lambda held: held.popitem(),
        lambda held: held.clear(),
    ],
)
def test_it_is_not_changed(change: Callable[[Any], Any]) -> None:
    held = Fixed({"a": 1})
    with pytest.raises(TypeError, match=r"changed by golden\.judge"):
        change(held)
    assert held == {"a": 1}


def test_otherwise_it_is_a_dict() -> None:
    held = Fixed({"a": 1})
    for again in (copy.copy(held), copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
        assert again == held
        assert type(again) is Fixed
    assert (repr(held), json.dumps(held), held | {"b": 2}) == (
        "{'a': 1}", '{"a": 1}', {"a": 1, "b": 2},
    )  # fmt: skip
