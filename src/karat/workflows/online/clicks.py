"""``karat.clicks``: click models of logs, and grades from clicks."""

from __future__ import annotations

from karat.workflows.online.click_agreement import agree_clicks as agree
from karat.workflows.online.click_fit import fit_clicks as fit
from karat.workflows.online.click_fit import models
from karat.workflows.online.click_judgments import judge_clicks as judge

__all__ = ["agree", "fit", "judge", "models"]
