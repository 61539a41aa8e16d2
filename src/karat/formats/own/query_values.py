"""Values by query in a line of a history, packed.

Values are 32-bit integers in ten-thousandths, the smallest integer for a missing value, in the
order of query ids; all first bytes, then all second bytes and so on, compressed (zlib), as Base64.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError
from karat.tables.release.history import ByQuery
from karat.tables.results import QueryScores

MOST = 10_000_000  # most queries in a line
_STEPS = 10_000
_NONE = np.iinfo(np.int32).min
_LARGEST = np.iinfo(np.int32).max / _STEPS


def packed(scores: QueryScores) -> ByQuery | None:
    """The values of a run for its line; None if no measure has values that can be stored."""
    order = np.array(
        sorted(range(len(scores.query_ids)), key=scores.query_ids.__getitem__), np.int64
    )
    kept = {
        name: _pack(values[order])
        for name, values in scores.values.items()
        if not (np.abs(values) >= _LARGEST).any()
    }
    if not kept or not len(order) or len(order) > MOST:
        return None
    ids = "".join(
        f"{len(query)}:{query}" for query in (scores.query_ids[place] for place in order)
    ).encode("utf-8", "replace")
    weights = None if scores.weights is None else _pack(_scaled(scores.weights[order]))
    return ByQuery(sha256(ids).hexdigest()[:16], len(order), kept, weights)


def unpacked(text: str, n: int) -> NDArray[np.float64]:
    """The values of a measure, or weights; NaN if missing; shape (n,)."""
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(text, validate=True), 4 * n + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise InputError("values by query are damaged") from None
    if len(data) != 4 * n or not stream.eof:
        raise InputError(f"values by query are not for {n:,} queries")
    planes = np.frombuffer(data, np.uint8).reshape(4, n)
    whole = np.ascontiguousarray(planes.T).view("<i4")[:, 0]
    values: NDArray[np.float64] = np.where(whole == _NONE, np.nan, whole / _STEPS)
    return values


def _pack(values: NDArray[np.float64]) -> str:
    missing = np.isnan(values)
    integers = np.where(missing, _NONE, np.rint(np.where(missing, 0, values) * _STEPS)).astype(
        "<i4"
    )
    planes = np.ascontiguousarray(integers.view(np.uint8).reshape(-1, 4).T)
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode()


def _scaled(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights scaled to a maximum of 100,000; only their ratios count."""
    scaled: NDArray[np.float64] = weights / weights.max() * 100_000
    return scaled
