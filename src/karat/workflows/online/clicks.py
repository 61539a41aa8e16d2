"""``karat.clicks``: click models of logs."""

from __future__ import annotations

from karat.workflows.online.click_fit import fit_clicks as fit
from karat.workflows.online.click_fit import models

__all__ = ["fit", "models"]
