"""Times of a log, text or numbers, to microseconds UTC."""

from __future__ import annotations

import polars as pl

UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}
_ISO = (
    r"^\s*(\d{4}-\d\d-\d\d)(?:[T ]+(\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9}))?)?"
    r"\s*(Z|z|UTC|GMT|[+-]\d\d:?\d\d|[+-]\d\d)?\s*$"
)
_FAR = 2_932_896  # days from 1970 to the end of the year 9999
_IN_A_DAY = {"day": 1, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NUMBER = r"^\s*-?\d+(\.\d+)?([eE]\+?\d+)?\s*$"
_SECONDS, _MILLIS, _MICROS = 1e11, 1e14, 1e17  # smaller numbers are seconds, milliseconds, …


def times(
    values: pl.Series, zone: str, unit: str | None = None, form: str | None = None
) -> pl.DataFrame:
    """The time of each row.

    Args:
        unit: Unit of numbers: s | ms | us | ns; guessed from their size if None.
        form: Format of text, as for ``strptime``; ISO 8601 if None.

    Returns:
        ``time_us``, Int64, null if invalid; ``naive``, whether the zone was assumed; ``number``,
        the guessed unit, or null; ``clock``, at daylight saving changes: ``twice`` in the hour that
        clocks repeat (the earlier is taken), ``never`` in the hour they skip (an hour later is
        taken), else null.
    """
    read, local = _read(values, zone, unit, form)
    if local is None or zone == "UTC":
        return read.with_columns(clock=_NOTHING)
    return read.hstack(local.select(_clock(pl.first(), zone).alias("clock")))


def _read(
    values: pl.Series, zone: str, unit: str | None, form: str | None
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The times, and local times where the zone was assumed."""
    dtype = values.dtype
    frame = pl.DataFrame({"said": values})
    if isinstance(dtype, pl.Datetime | pl.Date):
        frame = frame.select(near(pl.col("said"), dtype))
    if isinstance(dtype, pl.Datetime):
        utc = pl.col("said").cast(pl.Datetime("us", dtype.time_zone))
        if dtype.time_zone is None:
            return _of_clock(frame.select(utc), zone)
        return frame.select(time_us=utc.to_physical(), naive=False, number=_NOTHING), None
    if dtype == pl.Date:
        return _of_clock(frame.select(pl.col("said").cast(pl.Datetime("us"))), zone)
    no_zone = pl.lit(value=False).alias("naive")
    if dtype.is_numeric():
        time, kind = _numbers(pl.col("said"), unit)
        return frame.select(time, no_zone, kind), None
    if dtype != pl.String:
        none = frame.with_columns(time_us=pl.lit(None, pl.Int64), naive=no_zone, number=_NOTHING)
        return none.drop("said"), None
    return _texts(frame, zone, unit, form)


def _of_clock(local: pl.DataFrame, zone: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    clock = pl.first()
    read = local.select(
        _in_zone(clock, zone).alias("time_us"),
        clock.is_not_null().alias("naive"),
        _NOTHING.alias("number"),
    )
    return read, local


_NOTHING = pl.lit(None, pl.String)


def near(values: pl.Expr, dtype: pl.Datetime | pl.Date) -> pl.Expr:
    """Times and dates within the calendar's range: casts of others overflow or panic."""
    far = _FAR * _IN_A_DAY[dtype.time_unit if isinstance(dtype, pl.Datetime) else "day"]
    return pl.when(values.to_physical().is_between(-far, far)).then(values)


def _texts(
    frame: pl.DataFrame, zone: str, unit: str | None, form: str | None
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    text = pl.col("said")
    if form is not None:
        zoned = "%z" in form or "%:z" in form or "%#z" in form
        read = text.str.strip_chars().str.to_datetime(
            form, time_unit="us", strict=False, ambiguous="earliest"
        )
        if zoned:
            at = read.dt.convert_time_zone("UTC").to_physical()
            return frame.select(time_us=at, naive=pl.lit(value=False), number=_NOTHING), None
        return _of_clock(frame.select(read), zone)
    numeric = text.str.contains(_NUMBER).fill_null(value=False)
    if frame.select(numeric.any()).item():
        numbers, kind = _numbers(text.str.strip_chars().cast(pl.Float64, strict=False), unit)
        # Microseconds and nanoseconds are exact only as integers.
        whole = text.str.strip_chars().cast(pl.Int64, strict=False)
        exact, _ = _numbers(whole, unit)
        numbers = pl.coalesce(exact, numbers)
    else:
        numbers, kind = pl.lit(None, pl.Int64), _NOTHING
    parts = text.str.extract_groups(_ISO)
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
    times_read = cut.select(time_us=pl.coalesce(moment + micros, numbers), naive=naive, number=kind)
    return times_read, cut.select(pl.when(naive).then(stamp))


def _numbers(value: pl.Expr, unit: str | None) -> tuple[pl.Expr, pl.Expr]:
    """Numbers since 1970 as microseconds, and the unit that was guessed."""
    if unit is not None:
        return _scaled(value, UNITS[unit]).alias("time_us"), _NOTHING.alias("number")
    size = value.abs()
    guessed = (
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
        moment = pl.when(guessed == name).then(_scaled(value, factor)).otherwise(moment)
    return moment.alias("time_us"), guessed.alias("number")


def _scaled(value: pl.Expr, factor: float) -> pl.Expr:
    """Whole microseconds; integers stay exact, overflows become null."""
    value = pl.when(value.cast(pl.Float64).abs() < 9e18 / factor).then(value)
    scaled = value * int(factor) if factor >= 1 else value / round(1 / factor)
    return scaled.round().cast(pl.Int64, strict=False)


def _in_zone(local: pl.Expr, zone: str) -> pl.Expr:
    """UTC of local times in a zone; times in a skipped hour move an hour later."""
    if zone == "UTC":
        return local.to_physical()

    def at(clock: pl.Expr) -> pl.Expr:
        return (
            clock.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
            .dt.convert_time_zone("UTC")
            .to_physical()
        )

    return pl.coalesce(at(local), at(local.dt.offset_by("1h")))


def _clock(local: pl.Expr, zone: str) -> pl.Expr:
    """Whether a local time occurs twice or never."""
    first, last = (
        local.dt.replace_time_zone(zone, ambiguous=which, non_existent="null")
        for which in ("earliest", "latest")
    )
    return (
        pl.when(local.is_not_null() & first.is_null())
        .then(pl.lit("never"))
        .when(first != last)
        .then(pl.lit("twice"))
    )
