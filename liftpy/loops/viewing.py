"""Views of a kernel's expressions, and the storing of what they need first.

Statements are appended to the nest under construction (`liftpy.loops.nest`).

Note [Known views]. Unrolled code needs the same views again and again. A view that stores nothing
is a function of its variables' views, so it is cached by the identity of these, and its elements
by their index.

Note [Values with a name]. A function's body is emitted where its arguments are known, so a scalar
that it uses more than once is computed there, and the body sees a variable. In a view nothing can
be computed before it is read, perhaps behind a condition. So the term is noted, and held in a
variable where it is read (`liftpy.loops.reading`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.nat import ZERO, Nat, var
from liftpy.ir.primitive import Get, Primitive, ScalarOp
from liftpy.ir.pull import Pull, Value, known
from liftpy.ir.types import ScalarType, TupleType, Type, VectorType
from liftpy.ir.uses import Component, Uses, used_often
from liftpy.ir.walk import children
from liftpy.kernels.chain import Kernel
from liftpy.kernels.cutting import HOST_ID
from liftpy.loops.nest import DATA_INDEX, LANES, Bind, Statement
from liftpy.loops.tree import (
    Barrier,
)
from liftpy.primitives import (
    AnyIterate,
    AnyReduce,
    AnyReduceByIndex,
    AnyScan,
    At,
    MapGlb,
    MapHost,
    MapItem,
    MapLcl,
    MapSubgroup,
    MapWrg,
    MemoryPrimitive,
    ReduceInPlace,
    ReduceVec,
    ToGlobal,
    ToLocal,
    ToLocalPadded,
)
from liftpy.primitives.in_place import STATEMENTS
from liftpy.views.access import AccessReader, is_known, leaf, memory_view
from liftpy.views.terms import Lanes, Memory, Term, Variable

Env = dict[Param, Value]
STILL: Value = ()
"""Stands for any value whose elements are known (`is_known`)."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What the emitter knows about an expression.

    pure: reading it emits no statement, because it has no memory and no accumulator. at_once: a
    scalar that is made of its parts in one step; equal ones are one term anyway (`AccessReader`).
    """

    expr: Expr
    free: tuple[Param, ...]
    pure: bool
    at_once: bool


@dataclass
class Viewing:
    """The nest of a kernel under construction, and what is known about its views."""

    kernel: Kernel
    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int]
    read: AccessReader = field(default_factory=AccessReader)
    noted: set[Term] = field(default_factory=set)
    blocks: list[list[Statement]] = field(default_factory=lambda: [[]])
    counters: dict[str, int] = field(default_factory=dict)
    locals: list[Memory] = field(default_factory=list)
    scratch: dict[FunCall, list[Pull]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    uneven: int = 0
    in_items: int = 0  # `mapLcl` and `mapItem` whose functions are being emitted
    broadcasts: bool = False  # whether subgroups hold arrays
    nontemporal: bool = False
    storing: int = 0  # vectors whose elements are being computed
    views: dict[tuple[int, ...], tuple[Expr, list[Value], Value]] = field(default_factory=dict)
    traits: dict[int, Traits] = field(default_factory=dict)
    folds: dict[int, tuple[ReduceVec, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read.hold = self.data_index

    # --- bookkeeping ---

    def fresh(self, stem: str) -> str:
        """A new name, numbered per stem."""
        number = self.counters.get(stem, 0)
        self.counters[stem] = number + 1
        return f"{stem}{number}"

    def put(self, statement: Statement) -> None:
        """Append a statement."""
        self.blocks[-1].append(statement)

    def registers(self, stem: str, t: Type) -> Value:
        """A value in registers of the work-item."""
        return memory_view(self.fresh(stem), t, private)

    def new_local(self, name: str, scalar: ScalarType, length: int) -> Memory:
        """Memory of the work-group."""
        memory = Memory(name, "local", scalar, length)
        self.locals.append(memory)
        return memory

    # --- values ---

    def view(self, expr: Expr, env: Env) -> Value:
        """The value of an argument; parts to be stored first are stored in the current block.

        A view that stores nothing is computed once for the same variables (Note [Known views]).
        """
        if type(expr) is Param:
            return env[expr]
        traits = self.traits.get(id(expr)) or self.traits_of(expr)
        if traits.at_once or not traits.pure:
            return self.fresh_view(expr, env)
        used = [env[p] for p in traits.free]
        key = (id(expr), *map(id, used))
        found = self.views.get(key)
        if found is not None:
            return found[-1]
        if not all(map(is_known, used)):
            return self.fresh_view(expr, env)
        value = known(self.fresh_view(expr, env))
        self.views[key] = (expr, used, value)
        return value

    def traits_of(self, expr: Expr) -> Traits:
        """The traits of an expression, which hold wherever it is read."""
        fun = expr.fun if isinstance(expr, FunCall) else None
        stores = isinstance(fun, STATEMENTS)
        parts = (self.traits.get(id(e)) or self.traits_of(e) for e in children(expr))
        pure = not stores and all(part.pure for part in parts)
        scalar = isinstance(expr.type, ScalarType) and isinstance(fun, Get | ScalarOp | UserFun)
        found = self.traits[id(expr)] = Traits(expr, tuple(expr.free), pure, scalar)
        return found

    def fresh_view(self, expr: Expr, env: Env) -> Value:
        """`view` without the cache."""
        match expr:
            case Literal(value, t):
                return self.read.literal(value, t)
            case Tuple(elements):
                return tuple(self.view(e, env) for e in elements)
            case FunCall(Lambda() as f, args):
                values = [self.argument(a, env) for a in args]
                return self.view(f.body, {**env, **self.given(f, values, self.note)})
            case FunCall(UserFun() as f, args):
                return self.view(
                    f.body, dict(zip(f.params, [self.view(a, env) for a in args], strict=True))
                )
            case FunCall(MemoryPrimitive() as m, (arg,)):
                return self.materialise(m, arg, env)
            case FunCall(At() as fun, (index, xs)):
                return fun.meaning(self.read, self.view(index, env), self.argument(xs, env))
            case FunCall(AnyReduce() | AnyIterate() as fun, _) if not isinstance(
                fun, ReduceInPlace
            ):
                value = self.registers("acc", expr.type)
                self.generate(expr, env, value)
                return value
            case FunCall(
                AnyScan()
                | AnyReduceByIndex()
                | ReduceInPlace()
                | MapHost()
                | MapGlb()
                | MapWrg()
                | MapLcl()
                | MapSubgroup()
                | MapItem() as fun,
                _,
            ):
                memories = "toPrivate, toLocal or toGlobal"
                if isinstance(fun, AnyReduceByIndex):
                    memories = "toPrivate or toGlobal"
                elif not isinstance(fun, AnyScan):  # other work-items computed the values
                    memories = "toGlobal or toLocal"
                message = (
                    f"the result of {fun.name} is read in the kernel that computes it: "
                    f"store it with {memories} first"
                )
                raise TypeRefused(message)
            case FunCall(ReduceVec() as r, (init, vector)):
                return self.lanes(r, self.view(init, env), self.view(vector, env), expr.type, env)
            case FunCall(Primitive() as p, args):
                values = [self.view(a, env) for a in args]
                if p.function is None:
                    value = p.meaning(self.read, *values)
                    return known(value) if all(map(is_known, values)) else value
                return p.meaning(self.read, self.closure(p.function, env), *values)
            case _:
                message = f"no view of {type(expr).__name__}"
                raise InternalError(message)

    def argument(self, expr: Expr, env: Env) -> Value:
        """The view of an argument, which caches its elements if reading them emits nothing."""
        value = self.view(expr, env)
        return known(value) if self.still(expr, env) else value

    def still(self, expr: Expr, env: Env) -> bool:
        """Whether reading elements of a value emits no statement, once it is viewed."""
        match expr:
            case Param():
                return is_known(env[expr])
            case FunCall(AnyReduce() | AnyIterate() | MemoryPrimitive(), _):
                return True
            case FunCall(At() | AnyScan(), _):
                return False
            case FunCall(Lambda() as f, args) if all(self.still(a, env) for a in args):
                return self.still(f.body, {**env, **dict.fromkeys(f.params, STILL)})
            case FunCall(Primitive() as p, args):
                free = all(is_known(env[v]) for v in p.free)
                pure = p.function is None or self.traits_of(p.function.body).pure
                return pure and free and all(self.still(a, env) for a in args)
            case _:
                return False

    def closure(self, f: Lambda, env: Env) -> Callable[..., Value]:
        """A function of views."""
        return lambda *values: self.view(
            f.body, {**env, **dict(zip(f.params, values, strict=True))}
        )

    def computed(self, f: Lambda, *values: Value) -> Env:
        """The variables of a function that is emitted here (Note [Values with a name])."""
        return self.given(f, values, self.variable)

    def data_index(self, term: Term) -> str:
        """The name of a variable of the nest that holds an index."""
        if any(name.startswith(LANES) for name in term.names):
            message = (
                "a vector lane cannot read at a data-dependent index: "
                "read the elements before asVector"
            )
            raise TypeRefused(message)
        name = self.fresh(DATA_INDEX)
        self.put(Bind(name, term))
        return name

    def note(self, value: Value) -> Value:
        """A value whose scalars are held in variables where they are read."""
        if isinstance(value, tuple):
            return tuple(map(self.note, value))
        if value.parts:
            self.noted.add(value)
        return value

    def variable(self, term: Term, lane: str = "", width: int = 1) -> Variable:
        """Hold a term in a variable, and return the variable."""
        variable = Variable(self.fresh("#"), term.type, width)
        self.put(Bind(variable.name, term, lane, width))
        return variable

    def given(self, f: Lambda, values: Sequence[Value], name: Callable[[Term], Term]) -> Env:
        """A function's variables; `name` is applied to computed values used more than once."""
        env = dict(zip(f.params, values, strict=True))
        for param, used in used_often(f):
            if is_computed(param.type):
                env[param] = self.often(env[param], param.type, used, (), name)
        return env

    def often(
        self, value: Value, t: Type, used: Uses, component: Component, name: Callable[[Term], Term]
    ) -> Value:
        """`given` for a component of a variable."""
        match t:
            case TupleType(elements) if isinstance(value, tuple):
                return tuple(
                    self.often(value[k], e, used, (*component, k), name)
                    for k, e in enumerate(elements)
                )
            case VectorType() if used.many(component) and is_known(value) and leaf(value).parts:
                return known(Pull(value.length, lambda i: self.note(value[i])))
            case ScalarType() if used.many(component) and value.parts:
                return name(value)
            case _:
                return value

    def lanes(self, r: ReduceVec, init: Value, vector: Pull, t: Type, env: Env) -> Term:
        """A fold over lanes as a term; emitted now if its step has to store something."""
        if not isinstance(t, ScalarType):
            message = f"reduceVec folds to a scalar, not to {t}: fold each component separately"
            raise TypeRefused(message)
        width = int(vector.length)
        number = self.folds.setdefault(id(r), (r, len(self.folds)))[1]
        lane = f"lane{number}"
        whole = vector[var(lane, 0, width - 1)]
        if isinstance(whole, tuple):
            message = "reduceVec folds scalars, not tuples: make a scalar of each lane with mapVec"
            raise TypeRefused(message)
        step = self.closure(r.f, env)
        if not self.traits_of(r.f.body).pure:
            held = self.variable(whole, lane, width)
            result = init
            for k in range(width):
                result = step(result, replace(held, lane=k) if width > 1 else held)
            return result
        total, element = Variable(f"total{number}", t), Variable(f"element{number}", whole.type)
        return Lanes(init, whole, lane, width, total, element, step(total, element), t)

    def materialise(self, m: MemoryPrimitive, arg: Expr, env: Env) -> Value:
        """Store a value in the requested memory, and read it from there."""
        if not isinstance(m, ToLocal):
            value = self.own(m, arg) if isinstance(m, ToGlobal) else self.registers("p", arg.type)
            self.generate(arg, env, value)
            return value
        if self.uneven:
            message = (
                "toLocal needs a barrier that not every work-item would reach: "
                "make the mapLcl around it even"
            )
            raise TypeRefused(message)
        gap = int(m.gap) if isinstance(m, ToLocalPadded) else 0
        value = memory_view(self.fresh("l"), arg.type, self.new_local, gap)
        self.generate(arg, env, value)
        self.put(Barrier())
        return value

    def own(self, m: ToGlobal, arg: Expr) -> Value:
        """The place where the work-item holds a value in global memory: its buffer element."""
        left = self.scratch.get(call(m, arg))
        if not left:
            message = (
                f"{m.name} has room for one value of each work-item, and this one is "
                "computed several times in its kernel, for each lane of a vector or each reader: "
                "use toPrivate, or name the value with `let` outside of the function that is "
                "computed several times"
            )
            raise TypeRefused(message)
        item, count = ZERO, 1
        for dim, size in enumerate(self.global_size):
            if size > 1:
                alone = self.kernel.demand.groups and self.local_size[dim] == 1
                name = f"wid{dim}" if alone else f"gid{dim}"
                self.ids.add(name)
                item = item + count * var(name, 0, size - 1)
            count *= size
        return left.pop(0)[item]

    def iteration(self, length: int) -> Nat:
        """The number of the iteration in a loop of the host of this length."""
        if length == 1:
            return ZERO
        self.ids.add(HOST_ID)
        return var(HOST_ID, 0, length - 1)

    def generate(self, expr: Expr, env: Env, dest: Value) -> None:
        """Emit code that leaves the value of `expr` in `dest`."""
        raise NotImplementedError


def private(name: str, scalar: ScalarType, length: int) -> Memory:
    """Registers of the work-item."""
    return Memory(name, "private", scalar, length)


def is_computed(t: Type) -> bool:
    """Whether values of a type may be held in variables: scalars, vectors, tuples of them."""
    if isinstance(t, TupleType):
        return any(map(is_computed, t.elements))
    return isinstance(t, ScalarType | VectorType)
