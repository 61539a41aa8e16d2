"""Defaults: values from ``karat.toml`` for options that were not given."""

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
from karat.tables.schema import read_scale
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
    """Fill options that were not given from the nearest ``karat.toml``.

    Defaults that do not fit the files are skipped: slices by attributes that the queries do not
    have, and a scale that excludes some of the grades. A scale declared by the judgments wins.
    """
    defaults = read_defaults(start)
    if defaults is None:
        return ""
    used, not_used = [], []
    if defaults.measures and "measures" in keys:
        _checked(defaults, "measures", parse_all, defaults.measures)
        if not options["measures"]:
            options["measures"] = list(defaults.measures)
            used.append(f"measures {', '.join(defaults.measures)}")
    if defaults.by and "by" in keys and not options["by"]:
        have, lacking = _attributes(defaults.by, options, qrels)
        options["by"] = tuple(have)
        used += [f"by {', '.join(have)}"] if have else []
        not_used += [
            f"by {attribute} (these queries have no such attribute)" for attribute in lacking
        ]
    if defaults.scale is not None and "scale" in keys:
        low, high = scale = _checked(defaults, "scale", read_scale, defaults.scale)
        if options["scale"] is None and judgments.declared is None:
            try:
                judgments.on_scale(scale)
            except InputError as error:
                not_used.append(f"scale {low:g}-{high:g} ({error.what})")
            else:
                options["scale"] = f"{low:g}-{high:g}"
                used.append(f"scale {low:g}-{high:g}")
    free = not any(options.get(name) for name in _ASK_FOR_JUDGMENTS)
    if (
        defaults.fully_judged
        and "fully_judged" in keys
        and options["fully_judged"] is None
        and free
    ):
        options["fully_judged"] = True
        used.append("fully judged")
    parts = [*used, *([f"not used: {', '.join(not_used)}"] if not_used else [])]
    return f"defaults of {os.path.relpath(defaults.source)}: {'; '.join(parts)}" if parts else ""


def _checked(defaults: Defaults, key: str, read: Callable[[Any], _Read], value: Any) -> _Read:
    """The parsed value; errors name the file and line."""
    try:
        return read(value)
    except UsageError as error:
        message = f"[defaults] {key}: {error}"
        raise InputError(message, file=defaults.source, line=defaults.lines.get(key)) from None


def _attributes(
    by: Sequence[str], options: dict[str, Any], qrels: str
) -> tuple[list[str], list[str]]:
    """The attributes that the queries and documents have, and those they lack."""
    queries = inputs.queries(options["queries"])
    documents = inputs.documents_for(by, options["documents"], qrels)
    have = [attribute for attribute in by if sliceable(attribute, queries, documents)]
    return have, [attribute for attribute in by if attribute not in have]
