"""A user's own embedding function, in place of the demo's semantic system.

The function takes a list of texts and returns one vector for each. With the package
sentence-transformers (an example, not tested with karat), `my_model.py` is:

    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer("all-MiniLM-L6-v2")
    def minilm(texts: list[str]):
        return model.encode(texts)

and `karat demo --embed my_model:minilm` ranks by it, next to BM25 and the fusion of both.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError, nearest

DEPTH = 100
BATCH = 256
BATCHES_A_LINE = 4  # of progress
LONGEST_NAME = 60
# The demo's other systems, and device names of Windows.
TAKEN = {"bm25", "hybrid", "aux", "con", "nul", "prn"}
WANTED = "return one vector for each text: a list of lists, or a NumPy array of shape (n, d)"

Function = Callable[[list[str]], Any]
Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Embedding:
    """An embedding function, with its name in messages and the name of its run."""

    function: Function
    called: str  # my_model:minilm
    name: str  # minilm: letters, digits and ._- only

    def __call__(self, texts: list[str]) -> Any:
        return self.function(texts)


def load(reference: str) -> Embedding:
    """The function that `MODULE:FUNCTION` names: `my_model:minilm`, `my_model:model.encode`."""
    module_name, _, path = reference.partition(":")
    if not (module_name and path):
        raise UsageError(
            f"{reference!r} is not of the form MODULE:FUNCTION",
            fix="my_model:embed, for embed in ./my_model.py",
        )
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        target: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - user code may raise anything
        raise UsageError(
            f"cannot import the module {module_name!r} of --embed {reference}: {one_line(error)}",
            fix="name it as in Python, without .py: my_model:embed for embed in ./my_model.py",
        ) from None
    holder = module_name
    for part in path.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise UsageError(
                f"{holder} has no {part!r}", nearest=nearest(part, callables(target), 1)
            ) from None
        holder += ("." if ":" in holder else ":") + part
    return of(target, called=reference, name=part)


def of(function: Function, *, called: str | None = None, name: str | None = None) -> Embedding:
    """A function as an `Embedding`, by default under its own name."""
    if isinstance(function, Embedding):
        return function
    if not callable(function):
        kind = "None" if function is None else f"of type {type(function).__name__}"
        raise UsageError(
            f"{called or repr(function)} is {kind}, not a function",
            fix="give a function that takes a list of texts and returns one vector for each",
        )
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not hasattr(inner, "__qualname__"):  # a callable object: named by its class
        inner = type(inner)
    called = called or f"{inner.__module__}:{inner.__qualname__}"
    return Embedding(function, called, file_name(name or inner.__name__))


def callables(thing: Any) -> list[str]:
    return [
        name
        for name in dir(thing)
        if not name.startswith("_") and callable(getattr(thing, name, None))
    ]


def file_name(name: str) -> str:
    """A name for the run and its file: letters, digits and `._-`, not one of ``TAKEN``."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:LONGEST_NAME].strip("._-") or "embedding"
    return f"{safe}-embedding" if safe.casefold() in TAKEN else safe


def rank(
    documents: pl.DataFrame,
    queries: Mapping[str, str],
    embed: Function,
    progress: Callable[[str], None],
    depth: int = DEPTH,
) -> dict[str, list[tuple[str, float]]]:
    """Rank the documents (doc_id, title, text) for each query text, by the cosine of their vectors.

    Args:
        embed: Called with lists of at most 256 texts, queries first; returns one vector for each,
            of the same width and finite numbers. Vectors need not have length 1.
        progress: Called with one line of text now and then.

    Returns:
        query_id → the best `depth` (doc_id, cosine), cosine from -1 to 1 rounded to 6 digits, best
        first: cosine descending, then doc_id descending by bytes. A document whose vector is all 0
        has the cosine 0; a query whose vector is all 0 has an empty list.
    """
    embedding = of(embed)
    query_vectors = vectors_of(embedding, list(queries.values()), "queries", progress)
    texts = documents.select(pl.concat_str("title", "text", separator="\n")).to_series()
    width = query_vectors.shape[1]
    vectors = vectors_of(embedding, texts.to_list(), "documents", progress, width=width)
    doc_ids = documents["doc_id"].to_list()
    by_id = documents["doc_id"].rank("ordinal").to_numpy()
    ranked: dict[str, list[tuple[str, float]]] = {}
    for query_id, vector in zip(queries, query_vectors, strict=True):
        # Rounded, because the last digits differ from one linear algebra library to the next;
        # and -0.0 is 0.
        cosines = np.round(np.clip(vectors @ vector, -1, 1), 6) + 0.0
        best = np.lexsort((by_id, cosines))[::-1][: depth if vector.any() else 0]
        ranked[query_id] = [(doc_ids[i], float(cosines[i])) for i in best]
    return ranked


def vectors_of(
    embedding: Embedding,
    texts: list[str],
    kind: str,
    progress: Callable[[str], None],
    width: int | None = None,
) -> Vectors:
    """The vectors of all texts scaled to length 1, zeros unchanged: shape (texts, width)."""
    parts: list[Vectors] = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        if start % (BATCH * BATCHES_A_LINE) == 0:
            to = min(start + BATCH * BATCHES_A_LINE, len(texts))
            progress(f"{embedding.called} embeds {kind} {start + 1:,} to {to:,} of {len(texts):,}")
        try:
            returned = embedding(list(batch))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - user code may raise anything
            raise UsageError(f"{embedding.called} raised {one_line(error)}") from None
        vectors = checked(returned, batch, embedding.called, width)
        width = vectors.shape[1]
        parts.append(unit(vectors))
    if parts and not any(part.any() for part in parts):
        raise UsageError(
            f"{embedding.called} returned only zeros for all {kind}",
            fix="return vectors that depend on the text",
        )
    return np.concatenate(parts) if parts else np.empty((0, width or 0))


def checked(returned: Any, texts: Sequence[str], called: str, width: int | None) -> Vectors:
    """The return value of an embedding function as vectors: shape (texts, width)."""
    count = len(texts)
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise UsageError(
            f"{called} is async, expected a plain function",
            fix="wrap it: def embed(texts): return asyncio.run(embed_async(texts))",
        )
    expected = f"expected {count} vectors, shape ({count}, {'d' if width is None else width})"
    try:
        array = np.asarray(returned)
    except Exception as error:  # noqa: BLE001 - NumPy calls methods of a foreign object
        lengths = sorted(set(widths(returned)))
        if len(lengths) > 1:
            got = f"vectors of different widths ({', '.join(map(str, lengths[:4]))})"
        else:
            got = f"a {type(returned).__name__} that is not an array ({one_line(error)})"
        raise UsageError(f"{called} returned {got}; {expected}", fix=WANTED) from None
    if array.ndim == 0 or array.dtype.kind not in "fiub":
        got = "None" if returned is None else f"a {type(returned).__name__}"
        odd = [value for value in array.flat if not isinstance(value, int | float | np.number)]
        if array.ndim and odd:
            got += f" that contains a {type(odd[0]).__name__}"
        elif array.ndim:
            got += f" of dtype {array.dtype}, not of numbers"
        raise UsageError(f"{called} returned {got}; {expected}", fix=WANTED)
    right = array.ndim == 2 and len(array) == count and array.shape[1] > 0
    if not right or width not in (None, array.shape[1]):
        raise UsageError(f"{called} returned the shape {array.shape}; {expected}", fix=WANTED)
    vectors = array.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        value = vectors[wrong[0]][~np.isfinite(vectors[wrong[0]])][0]
        raise UsageError(
            f"{called} returned {value} in the vector of {texts[wrong[0]][:40]!r}; expected "
            "finite numbers"
        )
    return vectors


def widths(returned: Any) -> Iterator[int]:
    if isinstance(returned, list | tuple):
        yield from (len(vector) for vector in returned if hasattr(vector, "__len__"))


def unit(vectors: Vectors) -> Vectors:
    """Each row scaled to length 1; rows of 0 stay 0."""
    # By the largest number first: squares of very large and small numbers overflow or vanish.
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(largest == 0, 1, largest)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(lengths == 0, 1, lengths))


def one_line(error: BaseException) -> str:
    try:
        message = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - its __str__ may raise too
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
