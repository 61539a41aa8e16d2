"""Documentation of built-in and C modules, imported from a fixed list.

Only modules without side effects at import are listed. Each is shown under its public
name: `_io` as `io`, `posix` as `os`, the built-ins without a prefix (`str.split`).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Collection, Iterator
from types import FunctionType, ModuleType

from karat.demo._library import Entry

# (module to import, public name); "" means no prefix. The first module with an object
# keeps it: `open` is not shown again as `io.open`.
MODULES = (
    ("builtins", ""),
    ("_io", "io"),
    ("_collections", "collections"),
    ("_functools", "functools"),
    ("_datetime", "datetime"),
    ("_zoneinfo", "zoneinfo"),
    ("_decimal", "decimal"),
    ("_struct", "struct"),
    ("_csv", "csv"),
    ("_pickle", "pickle"),
    ("_sqlite3", "sqlite3"),
    ("_socket", "socket"),
    ("_signal", "signal"),
    ("_weakref", "weakref"),
    ("_contextvars", "contextvars"),
    ("_codecs", "codecs"),
    ("_heapq", "heapq"),
    ("_bisect", "bisect"),
    ("_bz2", "bz2"),
    ("_lzma", "lzma"),
    ("_queue", "queue"),
    ("_tracemalloc", "tracemalloc"),
    ("posix", "os"),
    ("nt", "os"),
    ("types", "types"),
    ("hashlib", "hashlib"),
    *(
        (name, name)
        for name in [
            "array",
            "atexit",
            "binascii",
            "cmath",
            "errno",
            "faulthandler",
            "fcntl",
            "gc",
            "grp",
            "itertools",
            "marshal",
            "math",
            "mmap",
            "pwd",
            "resource",
            "select",
            "sys",
            "syslog",
            "termios",
            "time",
            "unicodedata",
            "zlib",
        ]
    ),
)
# Public names of objects in private modules.
SINGLE = (
    ("_io", "_IOBase", "io.IOBase"),
    ("_io", "_RawIOBase", "io.RawIOBase"),
    ("_io", "_BufferedIOBase", "io.BufferedIOBase"),
    ("_io", "_TextIOBase", "io.TextIOBase"),
    ("_thread", "allocate_lock", "threading.Lock"),
    ("_thread", "RLock", "threading.RLock"),
    ("re", "Pattern", "re.Pattern"),
    ("re", "Match", "re.Match"),
    ("_random", "Random.random", "random.random"),
    ("_random", "Random.getrandbits", "random.getrandbits"),
)


def entries(exports: dict[str, Collection[str]]) -> Iterator[Entry]:
    """All documented objects of the modules above that this Python has.

    `exports`: for modules that also have source, the names in their `__all__`.
    """
    seen: set[int] = set()
    for name, attribute, shown in SINGLE:
        thing: object = imported(name)
        for part in attribute.split("."):
            thing = getattr(thing, part, None)
        if thing is not None:
            seen.add(id(thing))
            yield from of_thing(thing, shown, shown.rpartition(".")[0])
    for name, shown in MODULES:
        module = imported(name)
        if module is not None:
            yield from of_module(module, shown, exports.get(shown, ()), seen)


def imported(name: str) -> ModuleType | None:
    """The module; None if this Python does not have it."""
    try:
        return importlib.import_module(name)
    except ImportError:  # another platform, or a Python built without it
        return None


def of_module(
    module: ModuleType, shown: str, exported: Collection[str], seen: set[int]
) -> Iterator[Entry]:
    """A module and its public names; `seen` has the ids of objects shown before."""
    # "C implementation of the zoneinfo module" does not describe zoneinfo.
    if text(module) and not text(module).startswith("C implementation"):
        name = shown or module.__name__
        yield Entry(name, "module", name, "", text(module))
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or (exported and name not in exported):
            continue
        # Typer and others replace hooks in sys, which keeps the originals.
        thing = vars(sys).get(f"__{name}__", value) if module is sys else value
        foreign = isinstance(thing, FunctionType) and thing.__module__ != module.__name__
        # exit, help and the like are added by `site`, not by every Python.
        if foreign or id(thing) in seen or type(thing).__module__ == "_sitebuiltins":
            continue
        own_name = getattr(thing, "__name__", name)
        if own_name != name and vars(module).get(own_name) is thing:
            continue  # array.ArrayType is array.array
        if isinstance(thing, type) or inspect.isroutine(thing):
            seen.add(id(thing))
            yield from of_thing(thing, f"{shown}.{name}".lstrip("."), shown or "builtins")


def of_thing(thing: object, doc_id: str, module: str) -> Iterator[Entry]:
    """A function, or a class and its own methods."""
    kind = "class" if isinstance(thing, type) else "function"
    if text(thing):
        yield Entry(doc_id, kind, module, signature(thing), text(thing))
    if not isinstance(thing, type):
        return
    for name, value in sorted(vars(thing).items()):
        # These two have their own docstring, not that of the function.
        member = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        shown = inspect.isroutine(member) or inspect.isdatadescriptor(member)
        if shown and not name.startswith("_") and text(member):
            yield Entry(f"{doc_id}.{name}", "method", module, signature(member), text(member))


def text(thing: object) -> str:
    """Its docstring without indentation; "" if there is none."""
    doc = getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc).strip() if isinstance(doc, str) else ""


def signature(thing: object) -> str:
    """The signature of a C function, without the object it is called on; "" if unknown."""
    signature_text = getattr(thing, "__text_signature__", None)
    if not isinstance(signature_text, str):
        return ""
    inside = " ".join(signature_text.split())[1:-1]
    for first in ("$module", "$self", "$type", "self", "type"):
        if inside == first or inside.startswith((f"{first},", f"{first} ")):
            inside = inside[len(first) :].lstrip(", ").removeprefix("/").lstrip(", ")
            break
    return f"({inside})"
