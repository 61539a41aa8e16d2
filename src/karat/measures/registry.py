"""The registry: every measure registers here once, with the decorator on its function."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from karat.errors import UsageError
from karat.measures.entry import Entry, Terms
from karat.measures.evidence import Floats

F = TypeVar("F", bound=Callable[..., "Terms | Floats"])

_ENTRIES: dict[str, Entry] = {}
_FAMILIES = (
    "gains",
    "ranked",
    "sets",
    "incomplete",
    "users",
    "diversity",
    "condensed",
    "counts",
)
_SYMBOL = re.compile(r"[A-Za-z][A-Za-z0-9]*")


def measure(**fields: Any) -> Callable[[F], F]:
    """Register a measure; the keywords are those of ``Entry``, except ``function``.

    The function takes the evidence and, by keyword, the cutoff as ``k`` (if it has one) and each
    parameter; it returns ``Terms`` (preferred, as these can be explained) or one value for each
    query, NaN where it is undefined.

    Raises:
        UsageError: the symbol is taken, or is not letters and digits.
    """
    if "swaps" in fields:  # the old name
        warnings.warn("swaps is now monotone_in_swaps", FutureWarning, stacklevel=2)
        fields["monotone_in_swaps"] = fields.pop("swaps")

    def register(function: F) -> F:
        entry = Entry(function=function, **fields)
        if not _SYMBOL.fullmatch(entry.symbol):
            raise UsageError(f"invalid measure name {entry.symbol!r}: use letters and digits only")
        if not function.__module__.startswith("karat.measures."):
            _load()  # karat's names are reserved even if a user's measure registers first
        for name in (entry.symbol, *entry.aliases):
            taken = _ENTRIES.get(name.casefold())
            if taken is not None and _place(taken.function) != _place(function):
                raise UsageError(f"the name {name!r} is taken by {taken.symbol} ({taken.title})")
        for name in (entry.symbol, *entry.aliases):
            _ENTRIES[name.casefold()] = entry
        return function

    return register


def entries() -> list[Entry]:
    """Every registered measure once, in the order of its family."""
    _load()
    order = {f"{__package__}.{family}": place for place, family in enumerate(_FAMILIES)}
    found = {id(entry): entry for entry in _ENTRIES.values()}.values()
    # A family may have been imported before, by itself; users' own measures come last.
    return sorted(found, key=lambda entry: order.get(entry.function.__module__, len(order)))


def spellings() -> dict[str, Entry]:
    """Every symbol and alias, folded to lower case."""
    _load()
    return dict(_ENTRIES)


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    # A reloaded module replaces only its own measures.
    return function.__module__, function.__qualname__


@cache
def _load() -> None:
    for family in _FAMILIES:
        importlib.import_module(f"karat.measures.{family}")


def load_module(name: str) -> None:
    """Import a module that registers custom measures.

    Args:
        name: A module on the Python path or in the current folder: ``my_measures``.

    Raises:
        UsageError: it cannot be imported, or registers nothing.
    """
    _load()
    before, loaded = set(_ENTRIES), name in sys.modules
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a stranger's code raises
        raise UsageError(
            f"cannot import the module {name!r} of measures: {str(error) or type(error)}",
            fix="give the module name, without .py: my_measures for ./my_measures.py",
        ) from None
    if set(_ENTRIES) == before and not loaded:
        raise UsageError(
            f"the module {name!r} registers no measure",
            fix="decorate its functions with @karat.measure(symbol=…, …)",
        )
