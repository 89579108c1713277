"""Turns the result of a traced Python function into an expression that computes shared parts once.

The value of a Python variable is computed once. Its expression is one object. An object that is
used more than once, or inside a function that runs many times, is bound by `let`: in the function
that made it, or in the innermost function that contains all its uses. Variables, numbers, and small
views that compute nothing are repeated where they are used.

During a trace, every variable has a name that no program can have; this module gives it its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall, fresh
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Function, Lambda
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.walk import DEPTH, height
from liftpy.language.embedded.trace import Trace

VIEW = 12  # the most parts of a view that is repeated rather than bound
OUTERMOST = 0


def placeholder(number: int, name: str, bound: str = "") -> str:
    """The name of a variable of function `number` during a trace."""
    return f"?{number}{bound} {name}"


def plain_name(name: str) -> str:
    """The name of a variable without the marks of a trace."""
    return name.partition(" ")[2] if name.startswith("?") else name


def own_function(fun: Function) -> Lambda | None:
    """The function with a body that a call of `fun` runs; None if there is none."""
    return fun if isinstance(fun, Lambda) else fun.function if isinstance(fun, Primitive) else None


@dataclass
class Scope:
    """A function's body: the scope around it, whether it may run many times, the bound parts."""

    outer: int | None
    depth: int
    repeats: bool
    bound: list[Expr] = field(default_factory=list[Expr])


@dataclass
class Sharing:
    """Finds the shared parts of the body of an outermost function, and binds them.

    Scopes are numbered. `places` are the scopes in which a part, known by its identity, is used.
    """

    trace: Trace
    scopes: list[Scope] = field(default_factory=lambda: [Scope(None, 0, repeats=False)])
    binders: dict[Param, int] = field(default_factory=dict[Param, int])
    inner: dict[int, int] = field(default_factory=dict[int, int])
    numbered: dict[int, int] = field(default_factory=lambda: {0: OUTERMOST})
    variables: dict[int, Param] = field(default_factory=dict[int, Param])
    cheap: dict[int, int] = field(default_factory=dict[int, int])

    def bind(self, body: Expr) -> Expr:
        """The body of the outermost function, with a `let` for each shared part."""
        order = self.users_first(body)
        uses: dict[int, list[int]] = {id(body): [OUTERMOST]}
        for part in order:
            places = uses[id(part)]
            where = self.common(places)
            if isinstance(part, FunCall | Tuple) and self.size(part) > VIEW:
                home = self.home(part, where)
                if len(places) > 1 or self.repeated(where, home):
                    where = home
                    self.scopes[home].bound.append(part)
                    name = self.trace.names.get(id(part), "v")
                    count = len(self.variables)
                    self.variables[id(part)] = Param(placeholder(count, name, "v"), part.type)
            for child, place in self.children(part, where):
                uses.setdefault(id(child), []).append(place)
        return self.written(body, OUTERMOST)

    # the graph

    def users_first(self, body: Expr) -> list[Expr]:
        """Every part once, after all the parts that use it."""
        done: list[Expr] = []
        seen: set[int] = set()
        work: list[tuple[Expr, bool]] = [(body, False)]
        while work:
            part, finished = work.pop()
            if finished:
                done.append(part)
            elif id(part) not in seen:
                seen.add(id(part))
                work.append((part, True))
                work += [(child, False) for child in reversed(self.parts(part))]
        return done[::-1]

    def parts(self, part: Expr) -> tuple[Expr, ...]:
        """The parts that a part is made of; expressions made before the trace have none."""
        if isinstance(part, Tuple):
            return part.elements
        if not isinstance(part, FunCall) or id(part) not in self.trace.creators:
            return ()
        own = own_function(part.fun)
        return part.args if own is None else (*part.args, own.body)

    def children(self, part: Expr, where: int) -> Iterator[tuple[Expr, int]]:
        """The parts of a part in scope `where`, each with its own scope."""
        own = own_function(part.fun) if isinstance(part, FunCall) else None
        for child in self.parts(part):
            if own is not None and child is own.body and isinstance(part, FunCall):
                yield child, self.scope_of(own, part.fun is not own, where)
            else:
                yield child, where

    def scope_of(self, own: Lambda, repeats: bool, outer: int) -> int:  # noqa: FBT001
        """The scope of a function's body."""
        if id(own) not in self.inner:
            self.inner[id(own)] = len(self.scopes)
            for p in own.params:
                self.binders[p] = len(self.scopes)
                if p.name.startswith("?"):
                    self.numbered[int(p.name[1:].partition(" ")[0])] = len(self.scopes)
            self.scopes.append(Scope(outer, self.scopes[outer].depth + 1, repeats))
        return self.inner[id(own)]

    def size(self, part: Expr) -> int:
        """The number of parts of a view of variables; more than `VIEW` if it computes something."""
        if isinstance(part, Param | Literal):
            return 1
        if id(part) not in self.cheap:
            free = isinstance(part, Tuple) or (
                isinstance(part, FunCall) and isinstance(part.fun, Layout)
            )
            inside = sum(self.size(p) for p in self.parts(part)) if free else VIEW
            self.cheap[id(part)] = min(inside + 1, VIEW + 1)
        return self.cheap[id(part)]

    # scopes

    def common(self, places: list[int]) -> int:
        """The innermost scope that contains all of these."""
        found = places[0]
        for place in places[1:]:
            a, b = found, place
            while a != b:
                if self.scopes[a].depth >= self.scopes[b].depth:
                    a = self.scopes[a].outer or OUTERMOST
                else:
                    b = self.scopes[b].outer or OUTERMOST
            found = a
        return found

    def home(self, part: Expr, where: int) -> int:
        """The scope that binds a part: the function that made it, if it contains all the uses."""
        made = self.trace.creators.get(id(part))
        scope = self.numbered.get(made[1]) if made is not None else None
        if scope is None or self.common([scope, where]) != scope:
            return where
        needed = [self.binders[p] for p in part.free if p in self.binders]
        return scope if all(self.common([scope, n]) == n for n in needed) else where

    def repeated(self, where: int, home: int) -> bool:
        """Whether there is a function that may run many times between two scopes."""
        while where != home:
            if self.scopes[where].repeats:
                return True
            where = self.scopes[where].outer or OUTERMOST
        return False

    # writing

    def written(self, body: Expr, scope: int) -> Expr:
        """The body of a scope, inside a `let` for each part that is bound there."""
        result = self.mention(body)
        for part in self.scopes[scope].bound:
            value = self.rebuilt(part)
            result = FunCall(Lambda((self.variables[id(part)],), result), (value,))
        return result

    def mention(self, part: Expr) -> Expr:
        """A part at one of its uses: its variable if it is bound."""
        variable = self.variables.get(id(part))
        return self.rebuilt(part) if variable is None else variable

    def rebuilt(self, part: Expr) -> Expr:
        """A part with variables in place of the bound parts."""
        if isinstance(part, Tuple):
            return Tuple(tuple(map(self.mention, part.elements)))
        if not isinstance(part, FunCall) or not self.parts(part):
            return part
        args = tuple(map(self.mention, part.args))
        own = own_function(part.fun)
        if own is None:
            return FunCall(part.fun, args)
        new = Lambda(own.params, self.written(own.body, self.inner[id(own)]))
        callee = replace(part.fun, f=new) if isinstance(part.fun, Primitive) else new
        return FunCall(callee, args)


def named(function: Lambda, outer: dict[Param, Param] | None = None) -> Lambda:
    """A function whose variables have their own names.

    A variable is renamed if the body mentions an outer variable of the same name.
    """
    around = outer or {}
    taken = {around.get(p, p).name for p in function.free}
    params: list[Param] = []
    for p in function.params:
        params.append(Param(fresh(plain_name(p.name), taken), p.type))
        taken.add(params[-1].name)
    inside = {**around, **dict(zip(function.params, params, strict=True))}
    return Lambda(tuple(params), renamed(function.body, inside))


def renamed(expr: Expr, by: dict[Param, Param]) -> Expr:
    """`named` for an expression, with the renamed variables in scope."""
    match expr:
        case Param():
            return by.get(expr, expr)
        case Tuple(elements):
            return Tuple(tuple(renamed(e, by) for e in elements))
        case FunCall(fun, args):
            own = own_function(fun)
            if own is None and expr.free.isdisjoint(by):
                return expr
            new = tuple(renamed(a, by) for a in args)
            if own is None:
                return FunCall(fun, new)
            inner = named(own, by)
            return FunCall(replace(fun, f=inner) if isinstance(fun, Primitive) else inner, new)
        case _:
            return expr


def shallow(expr: Expr, most: int = DEPTH) -> Expr:
    """`expr`, if it is at most `most` levels deep, so that recursion over it is safe.

    TypeRefused if it is deeper.
    """
    if height(expr) > most:
        message = (
            f"the expression is nested more than {most} levels deep\n"
            "  each operator, pipeline step, function and shared part is a level\n"
            "  use lp.iterate for repetition, or a reduction for a long sum"
        )
        raise TypeRefused(message)
    return expr


def finished(function: Lambda, trace: Trace) -> Lambda:
    """The outermost function of a trace, with shared parts bound and variables named."""
    sharing = Sharing(trace)
    for p in function.params:
        sharing.binders[p] = OUTERMOST
    return named(Lambda(function.params, shallow(sharing.bind(function.body))))
