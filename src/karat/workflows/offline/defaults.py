"""Defaults: what ``karat.toml`` says of options that were not given."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from karat.diagnosis.slices import sliceable
from karat.errors import InputError, UsageError
from karat.formats.own.workspace import read_defaults
from karat.measures import parse_all
from karat.tables import Qrels
from karat.tables.scale import read_scale
from karat.tables.workspace import DEFAULTS, Defaults
from karat.workflows.offline import inputs

_ASK_FOR_JUDGMENTS = ("bounds", "judged_only", "judge_next")
_Read = TypeVar("_Read")


def fill_defaults(
    start: Path,
    options: dict[str, Any],
    qrels: str,
    judgments: Qrels,
    keys: Collection[str] = DEFAULTS,
) -> str:
    """Put the defaults of the nearest ``karat.toml`` where an option was not given.

    What cannot hold of these files is left out: slices by attributes that the queries do not have,
    and a scale that does not hold their grades. A scale that the judgments carry wins.

    Args:
        start: A folder; the file is in it or above it.
        options: By name, None or empty where not given; ``queries`` and ``documents`` too. Changed
            in place.
        qrels: Where the judgments were read.
        judgments: The judgments.
        keys: Which defaults the command takes.

    Returns:
        Which defaults are used and which are not, in a line; empty if there are none.

    Raises:
        InputError: a default is wrong; file, line and key are named.
    """
    found = read_defaults(start)
    if found is None:
        return ""
    used, not_used = [], []
    if found.measures and "measures" in keys:
        _checked(found, "measures", parse_all, found.measures)
        if not options["measures"]:
            options["measures"] = list(found.measures)
            used.append(f"measures {', '.join(found.measures)}")
    if found.by and "by" in keys and not options["by"]:
        have, lacking = _attributes(found.by, options, qrels)
        options["by"] = tuple(have)
        used += [f"by {', '.join(have)}"] if have else []
        not_used += [f"by {each} (these queries have no such attribute)" for each in lacking]
    if found.scale is not None and "scale" in keys:
        low, high = scale = _checked(found, "scale", read_scale, found.scale)
        if options["scale"] is None and judgments.declared is None:
            try:
                judgments.on_scale(scale)
            except InputError as error:
                not_used.append(f"scale {low:g}-{high:g} ({error.what})")
            else:
                options["scale"] = f"{low:g}-{high:g}"
                used.append(f"scale {low:g}-{high:g}")
    free = not any(options.get(name) for name in _ASK_FOR_JUDGMENTS)
    if found.fully_judged and "fully_judged" in keys and options["fully_judged"] is None and free:
        options["fully_judged"] = True
        used.append("fully judged")
    said = [*used, *([f"not used: {', '.join(not_used)}"] if not_used else [])]
    return f"defaults of {os.path.relpath(found.source)}: {'; '.join(said)}" if said else ""


def _checked(found: Defaults, key: str, read: Callable[[Any], _Read], value: Any) -> _Read:
    """The value as read; a mistake in it names the file and the line."""
    try:
        return read(value)
    except UsageError as error:
        what = f"[defaults] {key}: {error}"
        raise InputError(what, file=found.source, line=found.lines.get(key)) from None


def _attributes(
    by: Sequence[str], options: dict[str, Any], qrels: str
) -> tuple[list[str], list[str]]:
    """Which attributes the queries and documents have, and which they do not have."""
    queries = inputs.queries(options["queries"])
    documents = inputs.documents_for(by, options["documents"], qrels)
    have = [each for each in by if sliceable(each, queries, documents)]
    return have, [each for each in by if each not in have]
