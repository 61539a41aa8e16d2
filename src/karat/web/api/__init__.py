"""The API: the command line for programs, by the same workflows."""

from __future__ import annotations

from karat.web.api import (
    accounts,
    clicks,
    engines,
    experiments,
    golden,
    judging,
    offline,
    online,
    openapi,
    release,
    releases,
    shadow,
)

ROUTERS = (
    openapi.ROUTER,
    golden.SETS,
    golden.CONTENT,
    golden.EDITIONS,
    golden.QUEUE,
    golden.EXCHANGE,
    judging.ROUTER,
    offline.RUNS,
    offline.NUMBERS,
    offline.COMPARISONS,
    engines.ROUTER,
    release.ROUTER,
    releases.ROUTER,
    online.ROUTER,
    clicks.ROUTER,
    experiments.ROUTER,
    shadow.ROUTER,
    offline.CATALOGUE,
    accounts.ROUTER,
)
