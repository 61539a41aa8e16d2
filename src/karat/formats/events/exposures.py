"""Tables of exposures: who was shown which arm of an experiment, and when.

Read are the tables of GrowthBook (``user_id``, ``timestamp``, ``experiment_id``, ``variation_id``),
exports of OpenFeature hooks (``targetingKey``, ``flagKey``, ``variant``), and their like.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from karat.errors import InputError
from karat.formats.events.log import frames
from karat.formats.events.mapping import Mapped
from karat.formats.events.tally import Tally
from karat.formats.events.times import times
from karat.formats.events.vocabulary import snake
from karat.formats.tables.source import Source

COLUMNS = {
    "user_id": ("user_id", "unit", "unit_id", "targeting_key", "anonymous_id", "device_id", "user"),
    "time": ("timestamp", "time", "exposed_at", "first_exposure", "received_at", "ts"),
    "arm": ("arm", "variation_id", "variation", "variant", "group", "treatment_group"),
    "experiment": ("experiment_id", "experiment", "experiment_key", "flag_key", "feature_key"),
}
"""Names of the columns, in the order in which they are looked for; ``experiment`` is optional."""


def read_exposures(path: str | Path, experiment: str | None = None) -> pl.DataFrame:
    """``user_id``, ``time_us`` and ``arm`` of each exposure.

    Args:
        path: CSV, JSON Lines or Parquet.
        experiment: Only exposures of this experiment; None for all, if there is one.

    Raises:
        InputError: a column is missing, times are invalid, or several experiments are in it.
    """
    with Source(path) as source:
        name = source.name
        tally = Tally(name)
        parts = [frame for frame in frames(source, tally, Mapped()) if frame.height]
    if not parts:
        raise InputError("there are no exposures in it", file=name)
    table = pl.concat(parts, how="diagonal_relaxed")
    filled = [each.name for each in table if each.null_count() < table.height]
    by_name = {snake(column): column for column in reversed(filled)}
    found = {
        field: next((by_name[each] for each in names if each in by_name), None)
        for field, names in COLUMNS.items()
    }
    for field in ("user_id", "time", "arm"):
        if found[field] is None:
            raise InputError(
                f"no column is the {field} of exposures",
                file=name,
                fix=f"call it {' or '.join(COLUMNS[field][:3])}",
            )
    table = table.select(
        user_id=pl.col(str(found["user_id"])).cast(pl.String),
        time=pl.col(str(found["time"])),
        arm=pl.col(str(found["arm"])).cast(pl.String),
        experiment=pl.lit(None, pl.String)
        if found["experiment"] is None
        else pl.col(found["experiment"]).cast(pl.String),
    )
    table = _of_one(table, experiment, name)
    read = times(table["time"], "UTC")["time_us"]
    wrong = int((read.is_null() | table["user_id"].is_null() | table["arm"].is_null()).sum())
    if wrong:
        raise InputError(
            f"{wrong:,} of {table.height:,} exposures have no user, arm or valid time",
            file=name,
            fix="correct or remove them: an exposure that is lost moves a user out of its arm",
        )
    return table.select("user_id", read.alias("time_us"), "arm")


def _of_one(table: pl.DataFrame, experiment: str | None, name: str) -> pl.DataFrame:
    known = sorted(table["experiment"].drop_nulls().unique().to_list())
    if experiment is None and len(known) > 1:
        raise InputError(
            f"exposures of {len(known)} experiments: {', '.join(known[:5])}",
            file=name,
            fix="say which: --experiment NAME",
        )
    if experiment is None or not known:
        return table
    if experiment not in known:
        raise InputError(
            f"no exposures of the experiment {experiment}",
            file=name,
            fix=f"it has {', '.join(known[:10])}: say which with --experiment NAME",
        )
    return table.filter(pl.col("experiment") == experiment)
