"""Gate: may a kept run ship?"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from karat.formats.own.policy import read_policy
from karat.web.api.bodies import Body, Said
from karat.web.api.responses import printed
from karat.web.api.runs import of_golden
from karat.web.framework.auth import AReader
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import TheState
from karat.workflows.golden.editions import NOW
from karat.workflows.workspace.display_names import told_as
from karat.workflows.workspace.evaluate_stored import gate_kept

ROUTER = APIRouter(prefix="/api", tags=["numbers"])


class GateAsked(Said):
    """What is held against what.

    Attributes:
        policy: The text of a policy, in TOML.
        candidate: A kept run, by name or number.
        baseline: Another; null where no rule is about a drop.
        golden: Name of the golden set; that of the workspace if empty.
        edition: Name of an edition; `now` is the golden set as it stands.
        rel: Lowest grade that counts as relevant, where a measure does not say.
        complete: Every query of the golden set counts.
        depth: Cut rankings after so many documents.
        collapse: Fold chunks into the document named in this attribute of documents.
    """

    policy: str
    candidate: int | str
    baseline: int | str | None = None
    golden: str = ""
    edition: str = NOW
    rel: float | None = None
    complete: bool = False
    depth: int | None = Field(None, ge=1, lt=2**31)
    collapse: str | None = None


@ROUTER.post(
    "/gate",
    response_description="As `karat gate --format json`: `verdict` is a word, `exit_code` what the "
    "command would end with.",
)
async def gate(
    request: Request,
    site: TheState,
    _asking: AReader,
    asked: Annotated[GateAsked, Depends(Body(GateAsked))],
) -> Response:
    """Hold a kept run against a policy: may it ship? Nothing is kept."""
    found = of_golden(site, asked.golden)

    def held() -> Response:
        with tempfile.TemporaryDirectory(prefix="karat-") as folder:
            path = Path(folder) / "policy.toml"
            path.write_text(asked.policy, encoding="utf-8", newline="")
            with told_as(path, "policy"):
                policy = read_policy(path, asked.rel)
        settings = asked.model_dump(exclude={"policy", "candidate", "baseline", "golden"})
        policy = replace(policy, source="policy")
        made = gate_kept(found, policy, asked.baseline, asked.candidate, **settings)
        return printed(made.to_dict())

    return await in_turn(request, held)
