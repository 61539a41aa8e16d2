"""A user's own embedding function: what it finds, and what is said of its mistakes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.demo import embedding
from karat.errors import UsageError

PAGES = pl.DataFrame(
    {
        "doc_id": ["long", "near", "far", "zero", "twin.a", "twin.b"],
        "title": ["7 7", "3 4", "-3 -4", "0 0", "0 5", "0 6"],
        "text": ["…"] * 6,
    }
)


def by_title(texts: list[str]) -> list[list[float]]:
    """The numbers in the first line of each text."""
    return [[float(word) for word in text.split("\n")[0].split()] for text in texts]


def ranked(function: Callable[..., Any], text: str = "3 4", **options: Any) -> list[Any]:
    said: list[str] = []
    return embedding.rank(PAGES, {"q": text}, function, said.append, **options)["q"]


def test_cosines_best_first_and_ties_by_doc_id_descending() -> None:
    # (3, 4)/5 with (7, 7)/√98: 49 / (5 · 9.8995) = 0.989949; with (0, 1): 4/5; with itself: 1.
    assert ranked(by_title) == [
        ("near", 1.0),
        ("long", 0.989949),
        ("twin.b", 0.8),
        ("twin.a", 0.8),
        ("zero", 0.0),
        ("far", -1.0),
    ]
    assert [doc for doc, _ in ranked(by_title, depth=2)] == ["near", "long"]


def test_a_query_at_zero_is_near_nothing() -> None:
    asked = {"q": "0 0", "r": "3 4"}
    found = embedding.rank(PAGES, asked, by_title, lambda _: None)
    assert found["q"] == []
    assert len(found["r"]) == 6


@pytest.mark.parametrize("zero", ["queries", "documents"])
def test_nothing_but_zeros_ranks_nothing_and_is_refused(zero: str) -> None:
    def function(texts: list[str]) -> Any:
        given = "queries" if len(texts) == 1 else "documents"
        return np.zeros((len(texts), 2)) if given == zero else by_title(texts)

    with pytest.raises(UsageError, match=f"only zeros for all {zero}"):
        ranked(function)


def test_an_async_function_is_refused() -> None:
    async def function(texts: list[str]) -> Any:
        return by_title(texts)

    with pytest.raises(UsageError, match=r"<locals>.function is async.*\n  fix: .*asyncio.run"):
        ranked(function)


def test_no_cosine_is_minus_zero() -> None:
    scores = dict(ranked(by_title, "-1e-9 5"))
    assert str(scores["zero"]) == "0.0"


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e307])
def test_the_size_of_vectors_does_not_matter(scale: float) -> None:
    plain = ranked(by_title)
    scaled = ranked(lambda texts: np.array(by_title(texts)) * scale)
    assert [doc for doc, _ in scaled] == [doc for doc, _ in plain]
    tolerance = 0.01 if scale < 1e-308 else 1e-6  # numbers of 1e-320 have three digits left
    assert dict(scaled) == pytest.approx(dict(plain), abs=tolerance)


@pytest.mark.parametrize(
    "function",
    [
        lambda texts: np.array(by_title(texts), dtype=np.float16),
        lambda texts: np.array(by_title(texts), dtype=np.int8),
        lambda texts: tuple(np.array(vector) for vector in by_title(texts)),
        lambda texts: pl.DataFrame(by_title(texts), orient="row"),
    ],
    ids=["float16", "int8", "tuple of arrays", "data frame"],
)
def test_whatever_numpy_reads_as_numbers_will_do(function: Callable[..., Any]) -> None:
    assert dict(ranked(function)) == pytest.approx(dict(ranked(by_title)), abs=1e-6)


def test_it_is_asked_in_batches_queries_first_and_says_how_far_it_is() -> None:
    count = 1_500
    pages = pl.DataFrame(
        {
            "doc_id": [f"d{at:04}" for at in range(count)],
            "title": [f"{at} 1" for at in range(count)],
            "text": ["text"] * count,
        }
    )
    asked: list[list[str]] = []

    def function(texts: list[str]) -> list[list[float]]:
        asked.append(list(texts))
        vectors = by_title(texts)
        texts.clear()  # a function may do as it likes with its list
        return vectors

    said: list[str] = []
    found = embedding.rank(pages, {"a": "1 0", "b": "0 1"}, function, said.append)
    assert [len(batch) for batch in asked] == [2, 256, 256, 256, 256, 256, 220]
    assert asked[0] == ["1 0", "0 1"]
    assert asked[1][7] == "7 1\ntext"
    assert len(found["a"]) == len(found["b"]) == 100
    assert found["b"][0] == ("d0000", 1.0)
    called = f"{__name__}:{function.__qualname__}"
    assert said == [
        f"{called} embeds queries 1 to 2 of 2",
        f"{called} embeds documents 1 to 1,024 of 1,500",
        f"{called} embeds documents 1,025 to 1,500 of 1,500",
    ]


class NotAnArray:
    """What a tensor on a graphics card does when NumPy asks for it."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, r"returned None; expected 6 vectors, shape \(6, 2\)"),
        (3.5, "returned a float;"),
        ({"a": 1}, "returned a dict;"),
        ((number for number in ()), "returned a generator;"),
        ([1.0] * 6, r"returned the shape \(6,\); expected 6 vectors"),
        ([[1.0, 2.0]] * 5, r"returned the shape \(5, 2\); expected 6 vectors, shape \(6, 2\)"),
        ([[1.0, 2.0, 3.0]] * 6, r"returned the shape \(6, 3\); .* shape \(6, 2\)"),
        (np.ones((6, 2, 1)), r"returned the shape \(6, 2, 1\);"),
        (np.ones((6, 0)), r"returned the shape \(6, 0\);"),
        ([], r"returned the shape \(0,\);"),
        ([[1.0, 2.0]] * 5 + [[1.0]], r"returned vectors of different widths \(1, 2\);"),
        ([["1", "2"]] * 6, "returned a list that contains a str_?;"),
        ([[1.0, None]] * 6, "returned a list that contains a NoneType;"),
        ([[1j, 2j]] * 6, "returned a list"),
        (np.ones((6, 2), dtype=object), "returned a ndarray of dtype object, not of numbers;"),
        (NotAnArray(), "a NotAnArray that is not an array .TypeError: can't convert cuda:0"),
        ([[1.0, 2.0]] * 5 + [[float("nan"), 0.0]], r"returned nan in the vector of '0 6\\n…'"),
        (
            [[float("-inf"), 2.0]] * 6,
            r"returned -inf in the vector of '7 7\\n…'; expected finite numbers",
        ),
    ],
)
def test_what_is_no_vectors_is_told(returned: Any, said: str) -> None:
    def function(texts: list[str]) -> Any:
        return by_title(texts) if len(texts) == 1 else returned

    with pytest.raises(UsageError, match=said) as caught:
        ranked(function)
    assert str(caught.value).startswith(f"{__name__}:{function.__qualname__} returned ")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("text too\nlong"), "raised ValueError: text too long"),
        (KeyError("x"), "raised KeyError: 'x'"),
        (AssertionError(), "raised AssertionError"),
        (SystemExit(3), "raised SystemExit: 3"),
    ],
)
def test_what_it_raises_is_told(error: BaseException, said: str) -> None:
    def function(texts: list[str]) -> Any:
        raise error

    with pytest.raises(UsageError) as caught:
        ranked(function)
    assert str(caught.value) == f"{__name__}:{function.__qualname__} {said}"


def test_ctrl_c_is_no_mistake_of_the_function() -> None:
    def function(texts: list[str]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ranked(function)


class Model:
    """An object with a method, and one that can be called."""

    def encode(self, texts: list[str]) -> Any:
        return by_title(texts)

    __call__ = encode


@pytest.mark.parametrize(
    ("function", "called", "name"),
    [
        (by_title, "by_title", "by_title"),
        (Model().encode, "Model.encode", "encode"),
        (Model(), "Model", "Model"),
        (functools.partial(functools.partial(by_title)), "by_title", "by_title"),
        (lambda texts: [[1, 2]], "<lambda>", "lambda"),
    ],
)
def test_the_run_is_called_after_the_function(function: Any, called: str, name: str) -> None:
    found = embedding.of(function)
    assert (found.called, found.name) == (f"{__name__}:{called}", name)
    assert embedding.of(found) is found
    assert found(["1 2"]) == [[1, 2]]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("embed", "embed"),
        ("../etc/passwd", "etc_passwd"),
        ("ü", "embedding"),
        ("hybrid", "hybrid-embedding"),
        ("BM25", "BM25-embedding"),
        ("nul", "nul-embedding"),
        ("x" * 300, "x" * 60),
        ("x" * 59 + "..y", "x" * 59),
    ],
)
def test_a_name_is_safe_for_a_file(name: str, safe: str) -> None:
    assert embedding.file_name(name) == safe


@given(st.text())
def test_any_name_becomes_safe_and_stays_so(name: str) -> None:
    safe = embedding.file_name(name)
    assert safe.isascii()
    assert not set(safe) & set(' /\\:*?"<>|\n\t\0')
    assert embedding.file_name(safe) == safe


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder, which is not on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    name = "own_embedding_of_a_test"
    monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / f"{name}.py").write_text(
        "class Model:\n"
        "    def encode(self, texts):\n"
        "        return [[len(text), 1] for text in texts]\n"
        "model = Model()\n"
        "size = 3\n"
        "nothing = None\n"
        "hybrid = model.encode\n"
    )
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return name


def test_a_function_of_the_current_folder_is_found(module: str) -> None:
    found = embedding.load(f"{module}:model.encode")
    assert (found.called, found.name) == (f"{module}:model.encode", "encode")
    assert found(["abc"]) == [[3, 1]]
    assert embedding.load(f"{module}:hybrid").name == "hybrid-embedding"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (":modl", "has no 'modl'; did you mean Model?"),
        (":model.encod", ":model has no 'encod'; did you mean encode?"),
        (":size", ":size is of type int, not a function"),
        (":nothing", ":nothing is None, not a function"),
        ("", "is not of the form MODULE:FUNCTION\n  fix: my_model:embed"),
        (":", "is not of the form MODULE:FUNCTION"),
    ],
)
def test_a_function_that_is_not_there(module: str, path: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        embedding.load(module + path)
    assert said in str(caught.value)
    assert module in str(caught.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "ModuleNotFoundError: No module named 'own_embedding_of_a_test'"),
        ("import lacking_package", "ModuleNotFoundError: No module named 'lacking_package'"),
        ("def (", "SyntaxError: "),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit", "SystemExit"),
    ],
)
def test_a_module_that_cannot_be_imported(module: str, source: str | None, said: str) -> None:
    file = Path(f"{module}.py")
    if source is None:
        file.unlink()
    else:
        file.write_text(source)
    with pytest.raises(UsageError, match="cannot import the module ") as caught:
        embedding.load(f"{module}:embed")
    assert said in str(caught.value)
    assert "fix: name it as in Python" in str(caught.value)


def test_what_cannot_be_called_is_refused_before_any_work() -> None:
    with pytest.raises(UsageError, match="'my_model:embed' is of type str, not a function"):
        embedding.of("my_model:embed")  # type: ignore[arg-type]
