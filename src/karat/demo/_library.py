"""The public names of the standard library, from its source files.

One definition becomes one document, under the name by which it is imported. Packages re-export:
`asyncio/tasks.py` defines `gather`, `asyncio/__init__.py` imports it, users write
`asyncio.gather`. So the public names of every public module are resolved to their definitions, and
each definition keeps its best name (see `best_name`).
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

# Not the library itself: tests, editor, bundled installers, generated tables.
# Windows paths and tkinter are skipped because many machines do not have them.
SKIPPED = frozenset(
    [
        "test",
        "tests",
        "site-packages",
        "lib-dynload",
        "__pycache__",
        "idlelib",
        "lib2to3",
        "turtledemo",
        "ensurepip",
        "pydoc_data",
        "tkinter",
        "turtle",
        "ntpath",
        "nturl2path",
        "genericpath",
        "msilib",
        "windows_events",
        "windows_utils",
        "popen_spawn_win32",
    ]
)
# Modules that Python 3.12 and 3.13 removed, or that only forward to others: skipped on every
# Python, so that the demo's documents differ little between versions.
REMOVED = frozenset(
    [
        "aifc",
        "asynchat",
        "asyncore",
        "audioop",
        "cgi",
        "cgitb",
        "chunk",
        "crypt",
        "distutils",
        "imghdr",
        "imp",
        "mailcap",
        "nis",
        "nntplib",
        "ossaudiodev",
        "pipes",
        "smtpd",
        "sndhdr",
        "spwd",
        "sre_compile",
        "sre_constants",
        "sre_parse",
        "sunau",
        "telnetlib",
        "uu",
        "xdrlib",
    ]
)
# Documented under another name: os.path is posixpath or ntpath.
PUBLIC_MODULE = {
    "posixpath": "os.path",
    "_collections_abc": "collections.abc",
    "_pydecimal": "decimal",
}
# Re-exported by code that runs at import time, which parsing cannot see.
EXPORTED_AT_RUN_TIME = {
    "concurrent.futures": {
        "ThreadPoolExecutor": ("concurrent.futures.thread", "ThreadPoolExecutor"),
        "ProcessPoolExecutor": ("concurrent.futures.process", "ProcessPoolExecutor"),
    },
    "multiprocessing": {"Process": ("multiprocessing.process", "BaseProcess")},
    "unittest": {"IsolatedAsyncioTestCase": ("unittest.async_case", "IsolatedAsyncioTestCase")},
}
# Methods of a hidden object that a module exposes as functions: multiprocessing.Pool.
METHODS_AS_FUNCTIONS = {("multiprocessing.context", "BaseContext"): "multiprocessing"}


class Entry(NamedTuple):
    """One documented thing. kind: module, class, function or method (properties included)."""

    doc_id: str
    kind: str
    module: str
    signature: str  # "(a, b=1)"; "" where there is none
    text: str


Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
D = TypeVar("D", bound=Definition)
Site = tuple[str, str]  # the module a thing is defined in (its real name), and its name there


@dataclass
class Source:
    """One parsed source file, its top level sorted by what binds a name."""

    name: str
    is_package: bool
    doc: str
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, Site] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)  # _inst = Random()
    bound: dict[str, Site] = field(default_factory=dict)  # randint = _inst.randint
    exported: list[ast.expr] = field(default_factory=list)  # the parts of __all__
    modules: dict[str, str] = field(default_factory=dict)  # import profile as _pyprofile
    documented_as: dict[str, Site] = field(default_factory=dict)  # run.__doc__ = _pyprofile.…


def docstring(node: Definition | ast.Module) -> str:
    """The docstring without its indentation; "" if there is none."""
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "").strip()


def flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under `if`, `try` and `with` included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from flat([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            yield from flat(statement.body)
            for handler in statement.handlers:
                yield from flat(handler.body)
            yield from flat([*statement.orelse, *statement.finalbody])
        elif isinstance(statement, ast.With):
            yield from flat(statement.body)


def parse(name: str, path: Path) -> Source:
    """What one file binds at its top level; `name` is its dotted module name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old string escapes in somebody else's file
        tree = ast.parse(path.read_bytes(), filename=path.name)
    source = Source(name, path.name == "__init__.py", docstring(tree))
    package = name if source.is_package else name.rpartition(".")[0]
    for statement in flat(tree.body):
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                keep_documented(source.definitions, statement)
            case ast.Import(names):
                source.modules.update({n.asname or n.name: n.name for n in names})
            case ast.ImportFrom():
                note_import(source, package, statement)
            case ast.Assign(targets=[target], value=value):
                note_assignment(source, target, value)
            case ast.AugAssign(target=ast.Name("__all__"), value=value):
                source.exported.append(value)
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("__all__"), method), args=[value])):
                source.exported.append(
                    ast.List([value], ast.Load()) if method == "append" else value
                )
            case _:
                pass
    return source


def keep_documented(known: dict[str, D], node: D) -> None:
    """Of several definitions of one name (by platform, overloads) the first with a docstring."""
    other = known.get(node.name)
    if other is None or (not docstring(other) and docstring(node)):
        known[node.name] = node


def note_import(source: Source, package: str, statement: ast.ImportFrom) -> None:
    """`from origin import name`, a relative origin made absolute."""
    origin = statement.module or ""
    if statement.level:
        parts = package.split(".")
        parents = parts[: len(parts) - statement.level + 1]
        origin = ".".join([*parents, *([origin] if origin else [])])
    for name in statement.names:
        if name.name == "*":
            source.stars.append(origin)
        else:
            source.imports.setdefault(name.asname or name.name, (origin, name.name))


def note_assignment(source: Source, target: ast.expr, value: ast.expr) -> None:
    """The assignments that give a definition one more name, or a docstring."""
    match target, value:
        case ast.Tuple(targets), ast.Tuple(values) if len(targets) == len(values):
            for one, its in zip(targets, values, strict=True):
                note_assignment(source, one, its)
        case ast.Name("__all__"), _:
            source.exported.append(value)
        case ast.Name(name), ast.Name(other):
            source.aliases[name] = other  # the last one: `else` of try is the usual platform
        case ast.Name(name), ast.Call(ast.Name(cls)):
            source.instances[name] = cls
        case ast.Name(name), ast.Attribute(ast.Name(instance), attribute):
            cls = source.instances.get(instance, instance)
            if name == attribute and cls in source.definitions:
                source.bound[name] = (cls, attribute)
        case (
            ast.Attribute(ast.Name(name), "__doc__"),
            ast.Attribute(ast.Attribute(ast.Name(module), other), "__doc__"),
        ):
            source.documented_as[name] = (source.modules.get(module, module), other)
        case _:
            pass


def signature(node: Function, *, method: bool) -> str:
    """What a function takes, as written; a method without its `self`."""
    arguments = node.args
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    text = ast.unparse(arguments)
    if method and not static:
        first = (arguments.posonlyargs or arguments.args)[:1]
        if first:
            text = text.removeprefix(first[0].arg).removeprefix(", ").removeprefix("/, ")
            text = "" if text == "/" else text
    return f"({text})"


def members(node: ast.ClassDef, *, private: bool = False) -> dict[str, Function]:
    """The methods and properties a class itself defines."""
    found: dict[str, Function] = {}
    for statement in flat(node.body):
        if isinstance(statement, Function) and (private or not statement.name.startswith("_")):
            keep_documented(found, statement)
    return found


class Library:
    """All source files below a directory, parsed on first use."""

    def __init__(self, directory: Path) -> None:
        self.paths = dict(find(directory, ""))
        self.parsed: dict[str, Source] = {}
        self.sites: dict[Site, str] = {}  # definition → public name

    def source(self, name: str) -> Source | None:
        if name not in self.parsed and name in self.paths:
            self.parsed[name] = parse(name, self.paths[name])
        return self.parsed.get(name)

    def public_modules(self) -> list[str]:
        return [name for name in sorted(self.paths) if is_public_module(name)]

    def exports(self, source: Source) -> list[str] | None:
        """The names in `__all__`; None if there is none, or it is computed at run time."""
        if "__all__" in source.imports:
            origin = self.source(source.imports["__all__"][0])
            return self.exports(origin) if origin else None
        names: list[str] = []
        for part in source.exported:
            part_names = self.names_in(source, part)
            if part_names is None:
                return None
            names += part_names
        return names if source.exported else None

    def names_in(self, source: Source, expression: ast.expr) -> list[str] | None:
        match expression:
            case ast.List(elements) | ast.Tuple(elements):
                names = [e.value for e in elements if isinstance(e, ast.Constant)]
                return [str(name) for name in names] if len(names) == len(elements) else None
            case ast.BinOp(left, ast.Add(), right):
                ours, theirs = self.names_in(source, left), self.names_in(source, right)
                return None if ours is None or theirs is None else ours + theirs
            case ast.Attribute(ast.Name(module), "__all__"):
                origin = self.source(f"{source.name}.{module}")
                return self.exports(origin) if origin else None
            case _:
                return None

    def public_names(self, source: Source) -> list[str]:
        listed = self.exports(source)
        if listed is not None:
            return [name for name in listed if not name.startswith("_")]
        names = [*source.definitions, *source.aliases, *source.bound]
        for name, (origin, _) in source.imports.items():
            if self.is_facade(source, origin):
                names.append(name)
        for origin in source.stars:
            module = self.source(origin)
            if module and (self.is_facade(source, origin) or origin.startswith("_")):
                names += self.public_names(module)
        return [name for name in dict.fromkeys(names) if not name.startswith("_")]

    def is_facade(self, source: Source, origin: str) -> bool:
        """Whether an import from the own package re-exports, rather than uses."""
        same = origin.partition(".")[0] == source.name.partition(".")[0]
        return same and (source.is_package or origin.rpartition(".")[2].startswith("_"))

    def resolve(self, module: str, name: str, depth: int = 0) -> Site | None:
        """The definition of `name` in `module`."""
        source = self.source(module)
        if source is None or depth > 9:
            return None
        if name in EXPORTED_AT_RUN_TIME.get(module, {}):
            return self.resolve(*EXPORTED_AT_RUN_TIME[module][name], depth + 1)
        if name in source.definitions:
            return module, name
        if name in source.bound:
            cls, attribute = source.bound[name]
            site = self.resolve(module, cls, depth + 1)
            return (site[0], f"{site[1]}.{attribute}") if site else None
        if name in source.aliases:
            return self.resolve(module, source.aliases[name], depth + 1)
        if name in source.imports:
            return self.resolve(*source.imports[name], depth + 1)
        for origin in source.stars:
            site = self.resolve(origin, name, depth + 1)
            if site:
                return site
        return None

    def definition(self, site: Site) -> Definition | None:
        source = self.source(site[0])
        if source is None:
            return None
        outer, _, inner = site[1].partition(".")
        node = source.definitions.get(outer)
        return members(node).get(inner) if inner and isinstance(node, ast.ClassDef) else node

    def entries(self) -> Iterator[Entry]:
        """All documented public definitions, modules first; of repeated ids the first counts."""
        for name in self.public_modules():
            source = self.source(name)
            if source is not None and source.doc:
                shown = PUBLIC_MODULE.get(name, name)
                yield Entry(shown, "module", shown, "", source.doc)
        for site, doc_id in self.name_sites().items():
            node = self.definition(site)
            if isinstance(node, ast.ClassDef):
                yield from self.of_class(site, node, doc_id)
            elif node is not None and (text := docstring(node) or self.borrowed(site)):
                shown = signature(node, method="." in site[1])
                yield Entry(doc_id, "function", module_of(doc_id), shown, text)
        for (module, cls), shown in METHODS_AS_FUNCTIONS.items():
            node = self.definition((module, cls))
            for name, method in members(node).items() if isinstance(node, ast.ClassDef) else ():
                if docstring(method):
                    text = signature(method, method=True)
                    yield Entry(f"{shown}.{name}", "function", shown, text, docstring(method))

    def name_sites(self) -> dict[Site, str]:
        """Definition → public name, in order of modules and source lines."""
        names: dict[Site, list[str]] = {}
        modules = self.public_modules()
        for module in modules:
            source = self.source(module)
            if source is None:
                continue
            listed = [*self.public_names(source), *EXPORTED_AT_RUN_TIME.get(module, ())]
            for name in listed:
                site = self.resolve(module, name)
                full = f"{PUBLIC_MODULE.get(module, module)}.{name}"
                if site is not None and full not in self.paths:
                    names.setdefault(site, []).append(full)
        order = sorted(names, key=lambda site: (site[0], self.line(site)))
        self.sites = {site: best_name(site, names[site]) for site in order}
        return self.sites

    def borrowed(self, site: Site) -> str:
        """The docstring that a function gets by assignment from another."""
        source = self.source(site[0])
        origin = source.documented_as.get(site[1]) if source else None
        node = self.definition(origin) if origin else None
        return docstring(node) if node else ""

    def line(self, site: Site) -> int:
        node = self.definition(site)
        return node.lineno if node else 0

    def of_class(self, site: Site, node: ast.ClassDef, doc_id: str) -> Iterator[Entry]:
        module = module_of(doc_id)
        methods = members(node, private=True)
        made_by = methods.get("__init__") or methods.get("__new__")
        text = docstring(node)
        if made_by is not None and docstring(made_by):
            text = f"{text}\n\n{docstring(made_by)}".strip()
        if text:
            shown = signature(made_by, method=True) if made_by else ""
            yield Entry(doc_id, "class", module, shown, text)
        for (cls_module, owner), (name, method) in self.all_members(site, node):
            if docstring(method) and (cls_module, f"{owner}.{name}") not in self.sites:
                shown = signature(method, method=True)
                yield Entry(f"{doc_id}.{name}", "method", module, shown, docstring(method))

    def all_members(
        self, site: Site, node: ast.ClassDef
    ) -> Iterator[tuple[Site, tuple[str, Function]]]:
        """A class's own methods, and those of its private base classes."""
        bases = list(self.bases(site, node))
        documented: set[str] = set()  # documented by a public base class
        for base, definition in bases:
            if base in self.sites:
                documented.update(name for _, (name, _) in self.all_members(base, definition))
        own = members(node)
        for name, method in own.items():
            yield site, (name, method)
        documented.update(own)
        for base, definition in bases:
            for name, method in members(definition).items():
                if base not in self.sites and name not in documented:
                    documented.add(name)
                    yield base, (name, method)

    def bases(self, site: Site, node: ast.ClassDef) -> Iterator[tuple[Site, ast.ClassDef]]:
        """Base classes with source; for private ones also their bases."""
        for base in node.bases:
            origin = self.resolve(site[0], base.id) if isinstance(base, ast.Name) else None
            definition = self.definition(origin) if origin else None
            if origin is not None and isinstance(definition, ast.ClassDef):
                yield origin, definition
                if origin not in self.sites:
                    yield from self.bases(origin, definition)


def find(directory: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    """(dotted name, path) of every module below the directory, including private ones."""
    for path in sorted(directory.iterdir()):
        name = path.stem if path.suffix == ".py" else path.name
        if not name.isidentifier() or (name in SKIPPED and name != "genericpath"):
            continue
        if (not prefix and name in REMOVED) or f"{prefix}{name}" in PUBLIC_MODULE.values():
            continue
        if path.suffix == ".py" and name not in {"__init__", "__main__"}:
            yield f"{prefix}{name}", path
        elif (path / "__init__.py").is_file():
            yield f"{prefix}{name}", path / "__init__.py"
            if name != "encodings":  # one table per character set
                yield from find(path, f"{prefix}{name}.")


def is_public_module(name: str) -> bool:
    """Whether no part of its name starts with an underscore, or it has a public name."""
    private = any(part.startswith("_") for part in name.split("."))
    return name in PUBLIC_MODULE or (name != "genericpath" and not private)


def best_name(site: Site, names: list[str]) -> str:
    """A package above the definition, else the module of the definition, else the shortest."""
    module, name = PUBLIC_MODULE.get(site[0], site[0]), site[1].rpartition(".")[2]

    def badness(full: str) -> tuple[bool, bool, bool, int, str]:
        shown, _, last = full.rpartition(".")
        above = module.startswith(f"{shown}.")
        return (not above, shown != module, last != name, full.count("."), full)

    return min(names, key=badness)


def module_of(doc_id: str) -> str:
    """`json` for `json.dumps`."""
    return doc_id.rpartition(".")[0]
