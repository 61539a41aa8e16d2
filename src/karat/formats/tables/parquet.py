"""Parquet: only the columns that are needed, batch by batch."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import IO, Any, BinaryIO

import polars as pl
from polars.io.plugins import register_io_source

from karat.errors import InputError
from karat.formats.tables._parquet_footer import Footer, odd_page, read_footer
from karat.formats.tables.cells import Careful, fast, run_rows
from karat.formats.tables.format import Format, Rows, answered, frame_writers
from karat.formats.tables.source import BOMB_RATIO, Source
from karat.tables import Qrels, Run
from karat.tables.about import facts, flat
from karat.tables.column_names import choose

_BOMB_FROM = 1 << 28
_OWN = "karat_"  # prefix of karat's keys in the metadata
_ABOUT = f"{_OWN}about"
_CELL = 8  # bytes of a value in memory, about
_BATCH = 1 << 17  # rows
BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""Errors of Polars on unreadable files."""


def read_table(source: Source, role: str) -> Rows:
    plan, names, footer = _scanned(source)
    chosen = choose(names, role, source.name)
    schema = _collected(plan.head(0), source).schema
    for column in ("query_id", "doc_id"):
        _refuse_floats(schema[chosen[column]], chosen[column], source)
    frames = _parts(plan.select(*dict.fromkeys(chosen.values())), chosen, source)
    if role != "run":
        return Rows(frames, about=lambda: _of_judgments(source))
    about = _about(footer, source)
    return replace(run_rows(frames, chosen), about=lambda: about)


def _about(footer: Footer | None, source: Source) -> dict[str, str]:
    """The run's ``about`` in the file's metadata."""
    raw = None if footer is None else footer.metadata.get(_ABOUT.encode())
    if raw is None:
        return {}
    try:
        values = json.loads(raw)
        if isinstance(values, dict):
            return flat(values, source.name)
    except (ValueError, RecursionError):
        pass
    raise source.wrong(f"the metadata {_ABOUT} is not a JSON object", fix="write it again")


def read_attributes(source: Source, role: str) -> Rows:
    plan, names = scan(source)
    key = "query_id" if role == "queries" else "doc_id"
    chosen = choose(names, role, source.name)
    frame = _collected(plan, source)
    refuse_bomb(weight(frame), source)
    _refuse_floats(frame[chosen[key]].dtype, chosen[key], source)
    renamed = {name: column for column, name in chosen.items()}
    clash = [c for n, c in renamed.items() if n != c and c in names]
    frame = frame.drop(clash).rename(renamed)
    metadata = frame.schema.get("metadata")
    if isinstance(metadata, pl.Struct):
        fields = [field.name for field in metadata.fields]
        own = {name: f"metadata.{name}" for name in fields if name in frame.columns}
        opened = frame["metadata"].struct.unnest().rename(own)
        frame = pl.concat([frame.drop("metadata"), opened], how="horizontal")
    return Rows([frame])


def scan(source: Source) -> tuple[pl.LazyFrame, list[str]]:
    return _scanned(source)[:2]


def _scanned(source: Source) -> tuple[pl.LazyFrame, list[str], Footer | None]:
    path = source.again if source.compressed is None else None
    if path is not None:
        with path.open("rb") as stream:
            footer = sound_footer(stream, source)
        plan = pl.scan_parquet(path, glob=False)
    else:
        data = io.BytesIO(source.whole())
        footer = sound_footer(data, source)
        data.seek(0)
        plan = pl.scan_parquet(data, glob=False)
    if footer is not None:
        refuse_bomb(max(footer.uncompressed, _CELL * max(footer.values, footer.rows)), source)
    try:
        return plan, plan.collect_schema().names(), footer
    except BROKEN as error:
        raise damaged(error, source) from None


def sound_footer(file: BinaryIO, source: Source) -> Footer | None:
    footer = read_footer(file)
    wrong = None if footer is None else odd_page(file, footer)
    if wrong is not None:
        raise damaged(ValueError(wrong), source)
    return footer


def _parts(plan: pl.LazyFrame, chosen: dict[str, str], source: Source) -> Iterator[pl.DataFrame]:
    """Batches of the file; Polars reads the next one meanwhile."""
    start, total = 1, 0
    try:
        for part in plan.collect_batches(maintain_order=True, chunk_size=_BATCH):
            total += weight(part)
            refuse_bomb(total, source)
            done = fast(part, chosen)
            if done is None:
                careful = Careful(source.name, unit="row")
                for row, cells in enumerate(part.iter_rows(named=True), start):
                    careful.add({column: cells[name] for column, name in chosen.items()}, row)
                done = careful.frame()
            start += part.height
            yield done
    except BROKEN as error:
        raise damaged(error, source) from None


def weight(frame: pl.DataFrame) -> int:
    """Approximate bytes of a frame if every cell has its own copy of its string."""
    return sum(map(_weight, frame.get_columns()))


def _weight(column: pl.Series) -> int:
    kind = column.dtype
    if isinstance(kind, pl.Struct):
        return weight(column.struct.unnest()) if kind.fields else 0
    if isinstance(kind, pl.Array):
        column, kind = column.arr.to_list(), pl.List(kind.inner)
    if isinstance(kind, pl.List):
        return _weight(column.explode())
    cells = _CELL * len(column)
    if kind in (pl.Categorical, pl.Enum):
        column, kind = column.cast(pl.String), pl.String()
    if kind == pl.String:
        return cells + int(column.str.len_bytes().cast(pl.UInt64).sum() or 0)
    if kind == pl.Binary:
        return cells + int(column.bin.size().cast(pl.UInt64).sum() or 0)
    return cells


def refuse_bomb(size: int, source: Source) -> None:
    """Refuse data many times as large as its file, as real data never is."""
    if size > _BOMB_FROM and size > BOMB_RATIO * source.stored:
        raise source.wrong(
            f"the Parquet file expands more than {BOMB_RATIO} times, which real data does not",
            fix="if you trust it, write it as JSON Lines",
        )


def _collected(plan: pl.LazyFrame, source: Source) -> pl.DataFrame:
    try:
        return plan.collect()
    except BROKEN as error:
        raise damaged(error, source) from None


def damaged(error: BaseException, source: Source) -> InputError:
    reason = str(error).split("\n", maxsplit=1)[0].removeprefix("parquet: ")
    return source.wrong(
        f"the Parquet data is damaged or truncated ({reason})", fix="copy or write it again"
    )


def _refuse_floats(dtype: pl.DataType, name: str, source: Source) -> None:
    if dtype.is_float():
        raise source.wrong(
            f"column {name!r} contains floating-point numbers; ids are strings",
            fix=f"write {name!r} as text, so that 007 stays 007",
        )


def _of_judgments(source: Source) -> dict[str, str]:
    """The metadata of judgments: scale, queries without a relevant document, clicks behind them."""
    path = source.again if source.compressed is None else None
    try:
        found = pl.read_parquet_metadata(path or io.BytesIO(source.whole()))
    except BROKEN:
        return {}
    keys = ("scale", "without", "clicks")
    return {key: found[f"{_OWN}{key}"] for key in keys if f"{_OWN}{key}" in found}


def _judgments(qrels: Qrels, stream: IO[Any]) -> None:
    about = {}
    if qrels.declared is not None:
        about[f"{_OWN}scale"] = f"{qrels.declared[0]!r} {qrels.declared[1]!r}"
    if qrels.without:
        about[f"{_OWN}without"] = json.dumps(sorted(qrels.without))
    qrels.rows.write_parquet(stream, metadata=about or None)


def _written(frame: pl.DataFrame, stream: IO[Any]) -> None:
    frame.write_parquet(stream)


def _write_run(run: Run, stream: IO[Any]) -> None:
    about = facts(flat(run.about, run.source))
    metadata = {_ABOUT: json.dumps(about, ensure_ascii=False)} if about else None
    frames = answered(run)
    first = next(frames)
    second = next(frames, None)
    if second is None:
        first.write_parquet(stream, metadata=metadata)
        return
    parts = chain((first, second), frames)
    plan = register_io_source(lambda *_pushed: parts, schema=first.schema)
    plan.sink_parquet(stream, metadata=metadata, maintain_order=True)


PARQUET = Format(
    name="parquet",
    what="Parquet with named columns",
    extensions=(".parquet", ".pq"),
    readers={
        "qrels": lambda source: read_table(source, "qrels"),
        "run": lambda source: read_table(source, "run"),
        "queries": lambda source: read_attributes(source, "queries"),
        "documents": lambda source: read_attributes(source, "documents"),
    },
    writers=frame_writers(_written) | {"run": _write_run, "qrels": _judgments},
    keeps=frozenset({"about", "answers"}),
)
