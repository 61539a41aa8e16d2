"""What every build runs of a test with many cases, and what runs with ``--deep`` only."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest
from hypothesis import settings

_ALL = settings.default.max_examples if settings.default else 100
# For laws whose examples take long: a fifth of what a build tries of others, and all with --deep.
FEW = settings(max_examples=5 if _ALL <= 25 else _ALL)


def deep_but(chosen: Container[Any], values: Iterable[Any]) -> list[Any]:
    """Cases for ``parametrize``: those chosen run always, the others with ``--deep`` only.

    Args:
        chosen: The values, or what the values that are tuples begin with.
        values: All of them.
    """
    cases = [each if isinstance(each, tuple) else (each,) for each in values]
    return [
        pytest.param(*case, marks=() if case[0] in chosen else pytest.mark.deep) for case in cases
    ]
