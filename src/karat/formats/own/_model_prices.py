"""Prices of models that karat.toml does not give: those of ``genai-prices``, if it is installed."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module, metadata
from typing import Any

from karat.tables.golden.machine_judges import Prices


def model_prices(base_url: str, model: str) -> Prices:
    """The prices of a model of a known provider; unknown ones are None, never 0."""
    try:
        data_snapshot = import_module("genai_prices.data_snapshot")
    except ImportError:
        return Prices()
    try:
        _, found = data_snapshot.get_snapshot().find_provider_model(model, None, None, base_url)
        prices = found.get_prices(datetime.now(UTC))
        known = Prices(
            _number(prices.input_mtok),
            _number(prices.output_mtok),
            _number(prices.cache_read_mtok),
            source=f"genai-prices {metadata.version('genai-prices')}",
        )
    except (LookupError, ValueError, AttributeError, TypeError):
        return Prices()
    return known


def _number(price: Any) -> float | None:
    """Of a price, or of the lowest tier of one that depends on the length of the prompt."""
    price = getattr(price, "base", price)
    return None if price is None else float(price)
