"""Finds what a definition of the package rests on: its own text, and that of all that it mentions.

Modules are parsed, not run. The search follows each name in a definition, through imports, to the
function, class or constant of the package that it denotes. For a class it follows the bases, the
fields and the methods that Python itself calls (`__add__`). Any other method is followed once a
reached definition mentions an attribute of that name, since the class of a value is unknown.

Comments, docstrings, annotations of functions, messages of exceptions and printing methods are not
part of a text. Names outside the package are not followed.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from liftpy.errors import InternalError

#: Maps the name of a module to its text, or to None if it is not a module of the package.
Texts: TypeAlias = Callable[[str], str | None]
#: A definition: its module and its name there, which is `Class.member` for a part of a class.
Item: TypeAlias = tuple[str, str]

PRINTING = frozenset({"__str__", "__repr__", "__format__", "__doc__"})
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Mentions:
    """A definition as normalised text, and what it mentions."""

    text: str
    names: frozenset[str]
    attributes: frozenset[str]
    #: Attributes of names that may be modules: `matching.conditions`.
    dotted: frozenset[tuple[str, str]]


@dataclass
class Module:
    """The definitions of a module by name, and what it imports."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict[str, list[ast.stmt]])
    imports: dict[str, tuple[str, str | None]] = field(
        default_factory=dict[str, tuple[str, str | None]]
    )
    #: Statements that define nothing; they may change what they mention.
    loose: list[ast.stmt] = field(default_factory=list[ast.stmt])

    @classmethod
    def read(cls, name: str, text: str, *, package: bool) -> Module:
        """Return the module with this text."""
        module = cls()
        module._take(ast.parse(text).body, name if package else name.rpartition(".")[0])
        return module

    def _take(self, body: Iterable[ast.stmt], package: str) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self.definitions.setdefault(node.name, []).append(node)
                case ast.Import():
                    for alias in node.names:
                        short = alias.name.partition(".")[0]
                        self.imports[alias.asname or short] = (
                            (alias.name, None) if alias.asname else (short, None)
                        )
                case ast.ImportFrom():
                    source = node.module or ""
                    if node.level:
                        above = package.rsplit(".", node.level - 1)[0]
                        source = f"{above}.{source}" if source else above
                    for alias in node.names:
                        self.imports[alias.asname or alias.name] = (source, alias.name)
                case ast.If():
                    typing_only = isinstance(node.test, ast.Name) and (
                        node.test.id == "TYPE_CHECKING"
                    )
                    self._take([] if typing_only else node.body, package)
                    self._take(node.orelse, package)
                case ast.Assign() | ast.AnnAssign() if (targets := assigned(node)) is not None:
                    for target in targets:
                        self.definitions.setdefault(target, []).append(node)
                case ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    self.loose.append(node)


def assigned(node: ast.Assign | ast.AnnAssign) -> list[str] | None:
    """The names that a statement assigns to; None if it also assigns to something else."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    flat = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    names = [t.id for t in flat if isinstance(t, ast.Name)]
    return names if len(names) == len(flat) else None


# --- one definition ------------------------------------------------------------------------------


class Normaliser:
    """Writes a definition as normalised text and records what it mentions."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.dotted: set[tuple[str, str]] = set()

    def mentions(self) -> Mentions:
        """The text and the mentions recorded so far."""
        return Mentions(
            "".join(self.out),
            frozenset(self.names),
            frozenset(self.attributes),
            frozenset(self.dotted),
        )

    def visit(self, node: Any, bound: frozenset[str] = frozenset()) -> None:
        """Write a node; `bound` are the names bound by the enclosing functions."""
        match node:
            case list():
                self.out.append("[")
                for part in node:
                    self.visit(part, bound)
                self.out.append("]")
                return
            case ast.AST():
                pass
            case _:
                self.out.append(f"{node!r},")
                return
        inner = bound
        if isinstance(node, SCOPES):
            inner = bound | binds(node)
        elif isinstance(node, COMPREHENSIONS):
            inner = bound | targets_of(node.generators)
        self.note(node, inner)
        self.out.append(f"{type(node).__name__}(")
        for name, value in fields_of(node):
            if value is None or value == [] or name in {"ctx", "kind", "type_comment"}:
                continue
            outside = isinstance(node, SCOPES) and name in {"args", "decorator_list"}
            self.out.append(f"{name}=")
            self.visit(value, bound if outside else inner)
        self.out.append(")")

    def note(self, node: ast.AST, bound: frozenset[str]) -> None:
        """Record what a node itself mentions."""
        match node:
            case ast.Name(id=name):
                if name not in bound:
                    self.names.add(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name not in bound:
                self.dotted.add((name, attribute))
                self.attributes.add(attribute)
            case ast.Attribute(attr=attribute):
                self.attributes.add(attribute)
            case ast.MatchClass(kwd_attrs=attributes):
                self.attributes.update(attributes)
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(v), *_]):
                self.attributes.add(str(v))
            case _:
                pass


def fields_of(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """The fields of a node, without docstrings, annotations and messages of exceptions."""
    match node:
        case ast.Raise(exc=ast.Call(func=kind)):
            yield "exc", kind
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (("name", node.name), ("args", node.args), ("body", undocumented(node.body)))
            yield "decorator_list", node.decorator_list
        case ast.arg():
            yield "arg", node.arg
        case ast.AnnAssign(target=target, value=value):
            yield from (("target", target), ("value", value))
        case _:
            yield from ast.iter_fields(node)


def undocumented(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body without its docstring."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
        case _:
            return body


def binds(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The names local to a function: its parameters and what its own body assigns to."""
    a = function.args
    given = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
    found = {p.arg for p in given if p is not None}
    outside: set[str] = set()
    body = function.body if isinstance(function.body, list) else [function.body]
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                found.add(name)
                continue
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.Global(names=names):
                outside.update(names)
            case _:
                pass
        if not isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found - outside)


def targets_of(generators: Iterable[ast.comprehension]) -> frozenset[str]:
    """The names that a comprehension binds."""
    inside = (node for g in generators for node in ast.walk(g.target))
    return frozenset(node.id for node in inside if isinstance(node, ast.Name))


# --- the package ---------------------------------------------------------------------------------


@dataclass
class Closure:
    """The definitions that some roots rest on."""

    items: dict[Item, str] = field(default_factory=dict[Item, str])
    attributes: set[str] = field(default_factory=set[str])
    #: Members of reached classes, by name, that nothing mentions yet.
    waiting: dict[str, set[Item]] = field(default_factory=dict[str, set[Item]])

    def copy(self) -> Closure:
        """Return a copy to extend."""
        waiting = {name: set(items) for name, items in self.waiting.items()}
        return Closure(dict(self.items), set(self.attributes), waiting)

    @cached_property
    def digest(self) -> str:
        """A hash of the texts of all definitions."""
        lines = (f"{module}.{name} {text}" for (module, name), text in sorted(self.items.items()))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Reach:
    """The text of one definition and what follows from it; an imported name has no text."""

    text: str | None = None
    following: tuple[Item, ...] = ()
    attributes: frozenset[str] = frozenset()
    #: The members of a class that follow once their name is mentioned as an attribute.
    members: tuple[tuple[str, Item], ...] = ()


class Sources:
    """The definitions of a package.

    `beyond` are modules and definitions that are not followed; `*` matches any ending. In the
    modules of `printed`, the printing methods count too.
    """

    def __init__(
        self, texts: Texts, beyond: Collection[str] = (), printed: Collection[str] = ()
    ) -> None:
        self.texts = texts
        self.beyond = beyond
        self.printed = printed
        self.modules: dict[str, Module | None] = {}
        self.reached: dict[Item, Reach] = {}
        self.members: dict[Item, Mapping[str, list[ast.stmt]]] = {}

    def module(self, name: str) -> Module | None:
        """A module of the package by name; None if there is none."""
        if name not in self.modules:
            text = self.texts(name)
            package = text is not None and self.texts(f"{name}.__init__") is not None
            self.modules[name] = None if text is None else Module.read(name, text, package=package)
        return self.modules[name]

    def closure(self, roots: Iterable[Item], base: Closure | None = None) -> Closure:
        """What the roots rest on, added to what is in `base`."""
        found = Closure() if base is None else base.copy()
        queue: list[Item] = list(roots)
        while queue:
            queue += self.step(queue.pop(), found)
        return found

    def step(self, item: Item, found: Closure) -> Iterator[Item]:
        """Add one definition and return those that follow from it."""
        if item in found.items:
            return
        if item not in self.reached:
            self.reached[item] = self.reach(item)
        reach = self.reached[item]
        yield from reach.following
        if reach.text is None:
            return
        found.items[item] = reach.text
        for attribute in reach.attributes - found.attributes:
            found.attributes.add(attribute)
            yield from found.waiting.pop(attribute, ())
        for member, part in reach.members:
            if member in found.attributes:
                yield part
            else:
                found.waiting.setdefault(member, set()).add(part)

    def reach(self, item: Item) -> Reach:
        """What follows from a definition or a name, independently of what else is reached."""
        module, name = item
        if module in self.beyond or self.is_beyond(f"{module}.{name}"):
            return Reach()
        here = self.module(module)
        if here is None:
            return Reach()
        if "." not in name and name not in here.definitions:
            return Reach(following=tuple(self.imported(here, module, name)))
        seen = self.mentions(item)
        members = [(member, (module, f"{name}.{member}")) for member in self.members.get(item, ())]
        called = [part for member, part in members if self.is_called(member, module)]
        following = (f for one in seen for f in self.followed(one, module, here))
        return Reach(
            "".join(one.text for one in seen),
            tuple(dict.fromkeys((*following, *called))),
            frozenset().union(*(one.attributes for one in seen)),
            tuple(m for m in members if m[1] not in called),
        )

    def is_beyond(self, name: str) -> bool:
        """Whether a definition is not followed; `*` matches any ending."""
        return name in self.beyond or any(
            end and name.startswith(start)
            for start, end, _ in (entry.partition("*") for entry in self.beyond)
        )

    def is_called(self, member: str, module: str) -> bool:
        """Whether Python itself calls a member, other than to print."""
        special = member.startswith("__") and member.endswith("__")
        return special and (member not in PRINTING or module in self.printed)

    def followed(self, one: Mentions, module: str, here: Module) -> Iterator[Item]:
        """The definitions that a text of a module names."""
        dotted = {name for name, _ in one.dotted}
        for name in one.names:
            target = self.as_module(here, name)
            if target is None:
                yield (module, name)
            elif name not in dotted:  # used as a value
                yield from self.all_of(target)
        for name, attribute in one.dotted:
            if (target := self.as_module(here, name)) is not None:
                yield (target, attribute)

    def as_module(self, here: Module, name: str) -> str | None:
        """The module of the package that a name denotes; None if it is not one."""
        if name in here.definitions or name not in here.imports:
            return None
        source, attribute = here.imports[name]
        target = source if attribute is None else f"{source}.{attribute}"
        return target if self.module(target) is not None else None

    def imported(self, here: Module, module: str, name: str) -> Iterator[Item]:
        """The definition behind an imported name."""
        if name in here.imports:
            source, attribute = here.imports[name]
            if attribute is not None and self.module(source) is not None:
                yield (source, attribute)
        else:
            yield from self.all_of(f"{module}.{name}")

    def all_of(self, name: str) -> Iterator[Item]:
        """Every definition of a module, if it is in the package."""
        if (module := self.module(name)) is not None:
            yield from ((name, definition) for definition in module.definitions)

    def mentions(self, item: Item) -> list[Mentions]:
        """What a definition mentions; for a class, only its bases and fields."""
        module, name = item
        here = self.module(module)
        if here is None:
            raise InternalError(f"there is no module {module} in the package")
        owner, _, member = name.partition(".")
        nodes = self.members[module, owner][member] if member else here.definitions[name]
        touched = [n for n in here.loose if not member and mentions_name(n, name)]
        return [self.normalised(item, n) for n in (*nodes, *touched)]

    def normalised(self, item: Item, node: ast.stmt) -> Mentions:
        """Normalise a statement; the members of a class are left out and recorded separately."""
        write = Normaliser()
        if not isinstance(node, ast.ClassDef):
            write.visit(node)
            return write.mentions()
        members: dict[str, list[ast.stmt]] = {}
        kept: list[ast.stmt] = []
        for part in undocumented(node.body):
            match part:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    members.setdefault(part.name, []).append(part)
                case ast.Assign() if (names := assigned(part)) is not None:
                    for name in names:
                        members.setdefault(name, []).append(part)
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if is_shared(kind):
                    members.setdefault(name, []).append(part)
                case _:
                    kept.append(part)
        self.members[item] = members
        write.visit([*node.bases, *node.keywords, *node.decorator_list])
        for part in kept:
            if isinstance(part, ast.AnnAssign):  # a field: `nat_fields` reads its type
                write.out.append(ast.unparse(part.annotation))
            write.visit(part)
        return write.mentions()


def is_shared(annotation: ast.expr) -> bool:
    """Whether an annotation declares a class attribute, not a field."""
    return "ClassVar" in ast.unparse(annotation)


def mentions_name(node: ast.AST, name: str) -> bool:
    """Whether a statement mentions a name."""
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))
