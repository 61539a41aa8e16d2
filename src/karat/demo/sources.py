"""One source file of the standard library, read with `ast` and never run."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar


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
