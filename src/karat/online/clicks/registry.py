"""The registry of click models, by name."""

from __future__ import annotations

from collections.abc import Sequence

from karat.errors import UsageError, nearest
from karat.online.clicks import cascade, ctr, dbn, pbm
from karat.online.clicks.entry import ClickModel

MODELS: tuple[ClickModel, ...] = (*ctr.FAMILY, pbm.PBM, cascade.CASCADE, cascade.SDBN, dbn.DBN)
"""Every click model, baselines first."""

_BY_NAME = {model.name.casefold(): model for model in MODELS}


def find(name: str, offered: Sequence[str] = ()) -> ClickModel:
    """The model of a name, case-insensitive.

    Args:
        name: The name.
        offered: What an error offers in its place; all models if empty.

    Raises:
        UsageError: unknown model; the nearest is named.
    """
    model = _BY_NAME.get(name.strip().casefold())
    if model is None:
        names = offered or [model.name for model in MODELS]
        raise UsageError(
            f"unknown click model {name.strip()!r}",
            nearest=nearest(name.strip(), names),
            fix=f"use one of {', '.join(names)}",
        )
    return model
