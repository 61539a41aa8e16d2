"""Declared engines, and the checks of one, as tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat.reports.table import Column, Table
from karat.tables.engines import EngineCheck, EngineConfig

_ENGINES = (
    Column("name", "Engine"),
    Column("kind", "Kind"),
    Column("url", "Address", text=lambda row: row["url"] or row["function"]),
    Column("index", "Index"),
    Column("template", "Template", drop=1),
    Column(
        "params",
        "Parameters",
        text=lambda row: ", ".join(f"{k}={v}" for k, v in row["params"].items()),
    ),
)
_CHECKS = (
    Column("check", "Check"),
    Column("state", "State", style=lambda check: "strong" if check.state == "fail" else ""),
    Column("detail", "Detail"),
    Column("fix", "Fix"),
)


def engines_json(engines: Sequence[EngineConfig]) -> dict[str, Any]:
    """The object of ``karat engine list --format json``."""
    return {"engines": [_row(engine) for engine in engines]}


def engines_table(engines: Sequence[EngineConfig]) -> Table:
    notes = () if engines else ("no engine is declared: add [engine.NAME] to karat.toml",)
    return Table("", _ENGINES, [_row(engine) for engine in engines], notes=notes)


def checks_json(engine: EngineConfig, checks: Sequence[EngineCheck]) -> dict[str, Any]:
    """The object of ``karat engine check --format json``."""
    rows = [
        {"check": c.check, "state": c.state, "detail": c.detail, "fix": c.fix or None}
        for c in checks
    ]
    ok = all(check.state != "fail" for check in checks)
    return {"engine": engine.name, "kind": engine.kind, "ok": ok, "checks": rows}


def checks_table(engine: EngineConfig, checks: Sequence[EngineCheck]) -> Table:
    columns = [c for c in _CHECKS if c.name != "fix" or any(check.fix for check in checks)]
    return Table(f"{engine.name} ({engine.kind})", columns, list(checks))


def _row(engine: EngineConfig) -> dict[str, Any]:
    """What may be shown: never the value of a secret."""
    return {
        "name": engine.name,
        "kind": engine.kind,
        "url": str(engine.url),
        "index": engine.index,
        "function": engine.function,
        "template": engine.template_name,
        "params": dict(engine.params),
        "depth": engine.depth,
    }
