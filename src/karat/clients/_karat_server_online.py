"""A karat that is served, from Python: what users did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote

import polars as pl

from karat.clients.calls import Calls

Texts = str | Sequence[str]


class OnlineCalls:
    """The part of ``Client`` that asks for online metrics."""

    _calls: Calls

    def online_status(self) -> dict[str, Any]:
        """What the log of events holds, as `karat online status --format json`."""
        return self._online("status")

    def online_metrics(self) -> list[dict[str, Any]]:
        """The catalogue of online metrics."""
        return self._calls.rows("/online/metrics")

    def online_metric(self, name: str) -> dict[str, Any]:
        """One online metric, in any spelling."""
        return self._online(f"metrics/{quote(name, safe='')}")

    def online_evaluate(
        self,
        metrics: Texts = (),
        *,
        by: Texts = (),
        first: str | None = None,
        last: str | None = None,
    ) -> dict[str, Any]:
        """Online metrics of some days, as `karat online evaluate --format json`.

        Args:
            metrics: Names; the usual ones if empty.
            by: What to slice by, several at once as ``day,arm``; ``golden:NAME`` is an attribute
                of the golden set's queries.
            first: The first day, as ``2026-11-01``; the last four weeks if nothing is said.
            last: The last day, itself included.
        """
        asked = {"metric": _texts(metrics), "by": _texts(by), **_days(first, last)}
        return self._online("evaluate", **asked)

    def online_queries(
        self,
        *,
        by: str | None = None,
        first: str | None = None,
        last: str | None = None,
        **where: Any,
    ) -> pl.DataFrame:
        """The queries that lose most searches, the worst first; filtered by column."""
        rows = self._calls.rows("/online/queries", by=by, **_days(first, last), **where)
        return pl.DataFrame(rows, infer_schema_length=None)

    def online_watch(
        self,
        *,
        until: str | None = None,
        window: str = "1d",
        history: str | None = None,
        metrics: Texts = (),
        by: Texts = (),
        margins: Texts = (),
    ) -> dict[str, Any]:
        """The latest window beside its own history, as `karat online watch --format json`.

        Args:
            until: The day, or the hour, that the window ends with; None: the latest that is over.
            window: ``1d``, ``7d``, or hours that divide a day, as ``6h``.
            history: How far back it is compared, as ``56d``, which is the usual.
            metrics: Names; the usual ones if empty.
            by: What to slice by, as in ``online_evaluate``.
            margins: Changes that matter to nobody, as ``5%`` or ``CTR=0.01``.
        """
        asked = {"metric": _texts(metrics), "by": _texts(by), "margin": _texts(margins)}
        return self._online("watch", until=until, window=window, history=history, **asked)

    def online_against(
        self,
        run: int | str,
        *,
        measure: str | None = None,
        metric: str | None = None,
        by: str | None = None,
        first: str | None = None,
        last: str | None = None,
    ) -> dict[str, Any]:
        """What judges say of a kept run beside what users did: `karat online against`."""
        asked = {"measure": measure, "metric": metric, "by": by, **_days(first, last)}
        return self._online("against", run=str(run), **asked)

    def online_rows(
        self,
        metric: str | None = None,
        *,
        table: Literal["searches", "clicks", "sessions"] | None = None,
        counts: Literal["", "yes", "no"] = "",
        slices: Texts = (),
        first: str | None = None,
        last: str | None = None,
        most: int = 1_000,
    ) -> pl.DataFrame:
        """The rows behind a figure, the newest first; users by pseudonyms.

        Args:
            metric: Whose; None for all of a table.
            table: Of searches, clicks or sessions, without a metric.
            counts: ``yes`` those that its numerator counts, ``no`` those that it could.
            slices: As ``arm=b``.
            first: The first day.
            last: The last day.
            most: Rows, at most 1,000.
        """
        asked = {"metric": metric, "table": table, "slice": _texts(slices), "per": most}
        found = self._online("rows", **asked, counts=counts or None, **_days(first, last))
        return pl.DataFrame(found["items"], infer_schema_length=None)

    def _online(self, what: str, **asked: Any) -> dict[str, Any]:
        return dict(self._calls.get(f"/online/{what}", **asked))


def _texts(given: Texts) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _days(first: str | None, last: str | None) -> dict[str, str | None]:
    return {"from": first, "to": last}
