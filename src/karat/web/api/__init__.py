"""The API: what the command line does, for programs, by the same workflows."""

from __future__ import annotations

from karat.web.api import (
    account,
    catalogue,
    comparisons,
    description,
    disagreements,
    editions,
    evaluate,
    exchange,
    gate,
    golden,
    judge,
    online,
    queue,
    rows,
    runs,
    trends,
)

ROUTERS = (
    description.ROUTER,
    golden.ROUTER,
    rows.ROUTER,
    disagreements.ROUTER,
    editions.ROUTER,
    queue.ROUTER,
    exchange.ROUTER,
    judge.ROUTER,
    runs.ROUTER,
    evaluate.ROUTER,
    comparisons.ROUTER,
    gate.ROUTER,
    trends.ROUTER,
    online.ROUTER,
    catalogue.ROUTER,
    account.ROUTER,
)
"""Every part of the API."""
