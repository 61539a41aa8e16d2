"""Times of a log, as texts or numbers, in microseconds UTC."""

from __future__ import annotations

import polars as pl

UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}
_ISO = (
    r"^\s*(\d{4}-\d\d-\d\d)(?:[T ]+(\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9}))?)?"
    r"\s*(Z|z|UTC|GMT|[+-]\d\d:?\d\d|[+-]\d\d)?\s*$"
)
_NUMBER = r"^\s*-?\d+(\.\d+)?([eE]\+?\d+)?\s*$"
_SECONDS, _MILLIS, _MICROS = 1e11, 1e14, 1e17  # what is below is in seconds, milliseconds, …


def times(
    said: pl.Series, zone: str, unit: str | None = None, form: str | None = None
) -> pl.DataFrame:
    """When each row says it was.

    Args:
        said: Texts (ISO 8601, or numbers), numbers since 1970, or times.
        zone: Where clocks stood whose time does not say.
        unit: Of numbers: s | ms | us | ns; told by their size if None.
        form: Of texts, as ``strptime`` has it; ISO 8601 if None.

    Returns:
        ``time_us``, Int64, null where it cannot be read; ``naive``, whether its zone was assumed;
        ``number``, the unit that was told by size, or null.
    """
    dtype = said.dtype
    frame = pl.DataFrame({"said": said})
    if isinstance(dtype, pl.Datetime):
        utc = pl.col("said").cast(pl.Datetime("us", dtype.time_zone))
        if dtype.time_zone is None:
            return frame.select(
                time_us=_in_zone(utc, zone), naive=pl.col("said").is_not_null(), number=_NOTHING
            )
        return frame.select(time_us=utc.to_physical(), naive=False, number=_NOTHING)
    if dtype == pl.Date:
        local = pl.col("said").cast(pl.Datetime("us"))
        return frame.select(
            time_us=_in_zone(local, zone), naive=pl.col("said").is_not_null(), number=_NOTHING
        )
    if dtype.is_numeric():
        return frame.select(*_numbers(pl.col("said"), unit), naive=pl.lit(value=False))
    if dtype != pl.String:
        return frame.select(
            time_us=pl.lit(None, pl.Int64), naive=pl.lit(value=False), number=_NOTHING
        )
    return _texts(frame, zone, unit, form)


_NOTHING = pl.lit(None, pl.String)


def _texts(frame: pl.DataFrame, zone: str, unit: str | None, form: str | None) -> pl.DataFrame:
    said = pl.col("said")
    if form is not None:
        zoned = "%z" in form or "%:z" in form or "%#z" in form
        read = said.str.strip_chars().str.to_datetime(
            form, time_unit="us", strict=False, ambiguous="earliest"
        )
        if zoned:
            return frame.select(
                time_us=read.dt.convert_time_zone("UTC").to_physical(),
                naive=pl.lit(value=False),
                number=_NOTHING,
            )
        return frame.select(time_us=_in_zone(read, zone), naive=read.is_not_null(), number=_NOTHING)
    numeric = said.str.contains(_NUMBER).fill_null(value=False)
    if frame.select(numeric.any()).item():
        numbers, kind = _numbers(said.str.strip_chars().cast(pl.Float64, strict=False), unit)
        # A number of microseconds and more is exact as an integer only.
        whole = said.str.strip_chars().cast(pl.Int64, strict=False)
        exact, _ = _numbers(whole, unit)
        numbers = pl.coalesce(exact, numbers)
    else:
        numbers, kind = pl.lit(None, pl.Int64), _NOTHING
    parts = said.str.extract_groups(_ISO)
    cut = frame.with_columns(
        day=parts.struct[0],
        clock=parts.struct[1],
        fraction=parts.struct[2],
        offset=parts.struct[3],
    )
    clock = pl.col("clock").fill_null("00:00:00")
    clock = pl.when(clock.str.len_bytes() == 5).then(clock + ":00").otherwise(clock)
    stamp = (pl.col("day") + "T" + clock).str.to_datetime(
        "%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False
    )
    micros = pl.col("fraction").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64).fill_null(0)
    offset = pl.col("offset").str.replace_all(":", "", literal=True)
    zulu = offset.str.to_uppercase().is_in(["Z", "UTC", "GMT"])
    signed = offset.str.slice(1).str.pad_end(4, "0")
    minutes = signed.str.slice(0, 2).cast(pl.Int64, strict=False) * 60 + signed.str.slice(2).cast(
        pl.Int64, strict=False
    )
    minutes = pl.when(offset.str.starts_with("-")).then(-minutes).otherwise(minutes)
    minutes = pl.when(zulu).then(0).otherwise(minutes)
    naive = pl.col("offset").is_null() & stamp.is_not_null()
    utc = stamp.to_physical() - minutes * 60_000_000
    if zone == "UTC" or not cut.select(naive.any()).item():
        moment = pl.when(naive).then(stamp.to_physical()).otherwise(utc)
    else:
        moment = pl.when(naive).then(_in_zone(stamp, zone)).otherwise(utc)
    return cut.select(time_us=pl.coalesce(moment + micros, numbers), naive=naive, number=kind)


def _numbers(value: pl.Expr, unit: str | None) -> tuple[pl.Expr, pl.Expr]:
    """Microseconds of numbers since 1970, and the unit they were taken for."""
    if unit is not None:
        return _scaled(value, UNITS[unit]).alias("time_us"), _NOTHING.alias("number")
    size = value.abs()
    told = (
        pl.when(size < _SECONDS)
        .then(pl.lit("s"))
        .when(size < _MILLIS)
        .then(pl.lit("ms"))
        .when(size < _MICROS)
        .then(pl.lit("us"))
        .when(size.is_not_null())
        .then(pl.lit("ns"))
    )
    moment = pl.lit(None, pl.Int64)
    for name, factor in UNITS.items():
        moment = pl.when(told == name).then(_scaled(value, factor)).otherwise(moment)
    return moment.alias("time_us"), told.alias("number")


def _scaled(value: pl.Expr, factor: float) -> pl.Expr:
    """Whole microseconds; integers stay exact."""
    scaled = value * int(factor) if factor >= 1 else value / round(1 / factor)
    return scaled.round().cast(pl.Int64, strict=False)


def _in_zone(local: pl.Expr, zone: str) -> pl.Expr:
    """UTC of what a clock in a zone showed; an hour that there was not is the hour behind it."""
    if zone == "UTC":
        return local.to_physical()

    def at(clock: pl.Expr) -> pl.Expr:
        return (
            clock.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
            .dt.convert_time_zone("UTC")
            .to_physical()
        )

    return pl.coalesce(at(local), at(local.dt.offset_by("1h")))
