"""karat measures whether search got better, how certain that is, and where it fails.

PYTEST_DONT_REWRITE: pytest would rewrite the assertions of a plugin's whole package, and warn
where a project imported it before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.clients.karat_server import Client
    from karat.clients.tracing import trace
    from karat.errors import (
        CannotTell,
        InputError,
        KaratError,
        MissingExtra,
        PolicyRefused,
        UsageError,
    )
    from karat.experiments.interleaving import interleave
    from karat.formats import (
        read_certificate,
        read_documents,
        read_qrels,
        read_queries,
        read_run,
        write_certificate,
        write_documents,
        write_pairs,
        write_qrels,
        write_queries,
        write_run,
    )
    from karat.measures import measure
    from karat.tables import Documents, Pairs, Qrels, Queries, Results, Run
    from karat.workflows.diagnosis.diagnose import diagnose
    from karat.workflows.experiments.analyze import experiment
    from karat.workflows.experiments.assignment import assign
    from karat.workflows.experiments.shadowing import Shadow
    from karat.workflows.golden.golden_set import GoldenSet
    from karat.workflows.offline.benchmark import benchmark
    from karat.workflows.offline.compare import compare
    from karat.workflows.offline.evaluate import evaluate
    from karat.workflows.offline.explain import explain
    from karat.workflows.offline.fuse import fuse, fuse_tuned
    from karat.workflows.online import clicks as clicks
    from karat.workflows.online.evaluate import evaluate_online
    from karat.workflows.release.baseline import save_baseline
    from karat.workflows.release.certify import certify, verify_certificate
    from karat.workflows.release.gate import gate

_HOMES = {
    "karat.clients.karat_server": ("Client",),
    "karat.clients.tracing": ("trace",),
    "karat.errors": (
        "CannotTell",
        "InputError",
        "KaratError",
        "MissingExtra",
        "PolicyRefused",
        "UsageError",
    ),
    "karat.experiments.interleaving": ("interleave",),
    "karat.formats": (
        "read_certificate",
        "read_documents",
        "read_qrels",
        "read_queries",
        "read_run",
        "write_certificate",
        "write_documents",
        "write_pairs",
        "write_qrels",
        "write_queries",
        "write_run",
    ),
    "karat.measures": ("measure",),
    "karat.tables": ("Documents", "Pairs", "Qrels", "Queries", "Results", "Run"),
    "karat.workflows.release.baseline": ("save_baseline",),
    "karat.workflows.offline.benchmark": ("benchmark",),
    "karat.workflows.release.certify": ("certify", "verify_certificate"),
    "karat.workflows.offline.compare": ("compare",),
    "karat.workflows.offline.evaluate": ("evaluate",),
    "karat.workflows.offline.explain": ("explain",),
    "karat.workflows.offline.fuse": ("fuse", "fuse_tuned"),
    "karat.workflows.release.gate": ("gate",),
    "karat.workflows.diagnosis.diagnose": ("diagnose",),
    "karat.workflows.experiments.analyze": ("experiment",),
    "karat.workflows.experiments.assignment": ("assign",),
    "karat.workflows.experiments.shadowing": ("Shadow",),
    "karat.workflows.golden.golden_set": ("GoldenSet",),
    "karat.workflows.online.evaluate": ("evaluate_online",),
}
_MODULES = {"clicks": "karat.workflows.online.clicks", "measures": "karat.measures"}
"""Modules whose functions work without another import, such as ``karat.measures.recall_at_k``."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CannotTell",
    "Client",
    "Documents",
    "GoldenSet",
    "InputError",
    "KaratError",
    "MissingExtra",
    "Pairs",
    "PolicyRefused",
    "Qrels",
    "Queries",
    "Results",
    "Run",
    "Shadow",
    "UsageError",
    "assign",
    "benchmark",
    "certify",
    "compare",
    "diagnose",
    "evaluate",
    "evaluate_online",
    "experiment",
    "explain",
    "fuse",
    "fuse_tuned",
    "gate",
    "interleave",
    "measure",
    "read_certificate",
    "read_documents",
    "read_qrels",
    "read_queries",
    "read_run",
    "save_baseline",
    "trace",
    "verify_certificate",
    "write_certificate",
    "write_documents",
    "write_pairs",
    "write_qrels",
    "write_queries",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
