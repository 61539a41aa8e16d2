"""The demo's golden set and runs, loaded into an empty workspace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from karat.demo.build import build
from karat.demo.words import MEASURES
from karat.demo.workspace import fill
from karat.store.sql import audit
from karat.workflows.workspace.stored_comparisons import Asked, ask, compute
from karat.workflows.workspace.stored_runs import stored_by_name
from karat.workflows.workspace.workspace import Workspace

DEMO_SCALE = (0.0, 3.0)
"""The scale of the demo's grades."""


def load_demo(opened: Workspace, *, person: str, now: int, said: Callable[[str], None]) -> None:
    """Build the demo, and fill the golden set with it; audited.

    Its events, releases and engines are left out: they would mix with those of the workspace.
    """
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        made = build(Path(folder) / "demo", said)
        fill(opened, made, None, now=now)
        names = [path.stem for path in made.runs]
    with opened.store.begin() as connection:
        audit.note(connection, person, "load demo", opened.golden.name, now, {"runs": names})
    known = stored_by_name(opened)
    request = Asked([known[name].id for name in names], MEASURES, ("class",))
    compute(opened, ask(opened, request, by=person, now=now), lambda: now)
