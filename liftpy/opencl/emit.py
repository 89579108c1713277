"""From a kernel of a lowered program to its C tree.

The expression is walked with a destination. Loops come from the lowered maps and reductions,
indices from views: what is read is the meaning of the argument applied to memory, what is written
the inverse of the layouts at the end applied to the destination.

Private memory has no addresses, so a loop whose variable would index it is unrolled. That is found
while emitting: the access raises `UnrollError`, the loop of that variable is emitted again,
unrolled.

Note [Accumulators in place]. A reduction whose destination is private works in it. While its step
runs, the accumulator has a name (an `alias`) of its own: reading the memory under an older name, or
reading an element that this step has already overwritten, would see a new value for an old one.
Such a read raises `HazardError`, and the reduction is emitted again with the step's result in
memory of its own.

Note [Known views]. Unrolled code asks for the same views again and again. A view that stores
nothing is a function of its variables' views, so it is kept by the identity of these, and its
elements by their index.

Note [Values with a name]. A function's body is emitted where its arguments are known, so a scalar
that it uses more than once is computed there, and the body sees a variable. In a view nothing can
be computed before it is read, perhaps behind a condition: there the term is noted, and held in a
variable where it is read (`liftpy.opencl.scopes`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.expr import Expr, FunCall, Lambda, Literal, Param, Primitive, Tuple, UserFun
from liftpy.ir.nat import ZERO, Nat, greatest, least, nat, var
from liftpy.ir.pull import Known, Parts, Pull, Value, known
from liftpy.ir.types import FLOATS, ScalarType, TupleType, Type, VectorType
from liftpy.ir.walk import children
from liftpy.kernels.chain import Kernel
from liftpy.opencl import loops
from liftpy.opencl.c import (
    MAX_INT,
    All,
    Assign,
    Barrier,
    Block,
    C,
    CallC,
    Do,
    For,
    Infix,
    Private,
    Ternary,
    Text,
    index_c,
    magnitude,
    vector_type,
)
from liftpy.opencl.loops import HazardError, Vector, memories_of, vectors
from liftpy.opencl.scalars import INFIX, literal_c, operator_c
from liftpy.opencl.scopes import Scopes
from liftpy.opencl.terms import (
    at_all,
    at_lane,
    condition_c,
    guards,
    in_a_row,
    lanes_c,
    number_c,
    parts,
    repeated,
    tests_of,
)
from liftpy.opencl.uses import Component, Uses
from liftpy.primitives import (
    LAYOUTS,
    Concat,
    Iterate,
    IterateSeq,
    Map,
    MapGlb,
    MapLcl,
    MapSeq,
    MapSeqUnroll,
    MapWrg,
    Pad,
    Reduce,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceVec,
    Scan,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToLocal,
)
from liftpy.primitives import (
    Memory as MemoryPrimitive,
)
from liftpy.primitives.work import computes, is_layout
from liftpy.views.access import (
    AccessReader,
    Apply,
    Choice,
    Constant,
    FromIndex,
    Inside,
    Lanes,
    Load,
    Memory,
    Term,
    Variable,
    leaf,
    memory_view,
)
from liftpy.views.output import through

Env = dict[Param, Value]
CHOOSING = frozenset((Pad, Concat))  # layouts that read an array beside its ends, and then choose


def is_known(value: Value) -> bool:
    """Whether pulling a value's elements again gives the same ones."""
    kind = type(value)
    if kind is Known or kind is Load:
        return True
    if kind is tuple:
        return all(map(is_known, value))
    if kind is Parts:
        return is_known(value.pairs)
    return not isinstance(value, Pull)


def read_inside(value: Value) -> Value:
    """An array that is read at its ends where a border or another part reads beside it.

    A load that is not chosen is not made; but a fold is stored before anything is chosen.
    """
    if is_known(value) or not isinstance(value, Pull):
        return value
    return Pull(value.length, lambda i: value[least(greatest(i, 0), int(value.length) - 1)])


class UnrollError(Exception):
    """A private memory is indexed by loop variables; never leaves this module."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


@dataclass(frozen=True)
class Access:
    """One access to a buffer, for `--stage views` and for barriers."""

    memory: Memory
    index: Nat
    width: int
    store: bool


@dataclass
class Marks:
    """How far the emission was, to go back to."""

    counters: dict[str, int]
    blocks: list[tuple[int, int]]
    privates: int
    locals: int
    accesses: int
    live: dict[Memory, int]
    stored: dict[tuple[int, Memory], set[int]]
    uneven: int


@dataclass
class Emitter(Scopes):
    """The state of one kernel's emission."""

    kernel: Kernel
    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int]
    privates: list[Memory] = field(default_factory=list)
    locals: list[Memory] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    live: dict[Memory, int] = field(default_factory=dict)
    stored: dict[tuple[int, Memory], set[int]] = field(default_factory=dict)
    uneven: int = 0
    views: dict[tuple[int, ...], tuple[Expr, tuple[Value, ...], Value]] = field(
        default_factory=dict
    )
    pure: dict[int, tuple[Expr, bool]] = field(default_factory=dict)
    folds: dict[int, tuple[ReduceVec, int]] = field(default_factory=dict)
    used: dict[tuple[int, int], tuple[Lambda, Uses]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read = AccessReader()

    # --- bookkeeping ---

    def mark(self) -> Marks:
        """Note where the emission is."""
        return Marks(
            dict(self.counters),
            [(len(b.statements), len(b.loads)) for b in self.blocks],
            len(self.privates),
            len(self.locals),
            len(self.accesses),
            dict(self.live),
            {k: set(v) for k, v in self.stored.items()},
            self.uneven,
        )

    def back(self, marks: Marks) -> None:
        """Forget what was emitted since."""
        self.counters = dict(marks.counters)
        del self.blocks[len(marks.blocks) :]
        for block, (statements, loads) in zip(self.blocks, marks.blocks, strict=True):
            del block.statements[statements:]
            while len(block.loads) > loads:  # the latest come last
                block.loads.popitem()
        del self.privates[marks.privates :]
        del self.locals[marks.locals :]
        del self.accesses[marks.accesses :]
        self.live = dict(marks.live)
        self.stored = {k: set(v) for k, v in marks.stored.items()}
        self.uneven = marks.uneven

    def clear(self) -> None:
        """Forget the views and terms: they know the emitter, and would be kept with it."""
        self.views.clear()
        self.read.terms.clear()
        self.read.lanes.clear()
        self.shared.clear()

    def new_private(self, name: str, scalar: ScalarType, length: int) -> Memory:
        """Registers of the work-item."""
        memory = Memory(name, "private", scalar, length)
        self.privates.append(memory)
        return memory

    def new_local(self, name: str, scalar: ScalarType, length: int) -> Memory:
        """Memory of the work-group."""
        memory = Memory(name, "local", scalar, length)
        self.locals.append(memory)
        return memory

    # --- values ---

    def view(self, expr: Expr, env: Env) -> Value:
        """What an argument means; what must be stored first is stored, in the current block.

        A view that stores nothing is worked out once for the same variables (Note [Known views]).
        """
        if isinstance(expr, Param):
            return env[expr]
        used = tuple(env[p] for p in expr.free)
        if not self.stores_nothing(expr) or not all(map(is_known, used)):
            return self.fresh_view(expr, env)
        key = (id(expr), *map(id, used))
        if key not in self.views:
            self.views[key] = (expr, used, known(self.fresh_view(expr, env)))
        return self.views[key][-1]

    def stores_nothing(self, expr: Expr) -> bool:
        """Whether reading a view emits no statement: it has no memory and no accumulator."""
        found = self.pure.get(id(expr))
        if found is None:
            stores = isinstance(expr, FunCall) and isinstance(
                expr.fun, MemoryPrimitive | Reduce | Iterate | Scan
            )
            pure = not stores and all(map(self.stores_nothing, children(expr)))
            found = self.pure[id(expr)] = (expr, pure)
        return found[1]

    def fresh_view(self, expr: Expr, env: Env) -> Value:
        """`view`, worked out."""
        match expr:
            case Literal(value, t):
                return self.read.literal(value, t)
            case Tuple(elements):
                return tuple(self.view(e, env) for e in elements)
            case FunCall(Lambda() as f, args):
                return self.view(f.body, {**env, **self.bound(f, args, env)})
            case FunCall(UserFun() as f, args):
                return self.view(
                    f.body, dict(zip(f.params, [self.view(a, env) for a in args], strict=True))
                )
            case FunCall(MemoryPrimitive() as m, (arg,)):
                return self.materialise(m, arg, env)
            case FunCall(Reduce() | Iterate(), _):
                value = memory_view(self.fresh("acc"), expr.type, self.new_private)
                self.generate(expr, env, value)
                return value
            case FunCall(Scan() as scan, _):
                message = (
                    f"the result of {scan.name} is read in the kernel that makes it: "
                    "store it with toPrivate, toLocal or toGlobal first"
                )
                raise TypeRefused(message)
            case FunCall(MapGlb() | MapWrg() | MapLcl() as parallel, _):
                message = (
                    f"the result of {parallel.name} is read in the kernel that makes it: "
                    "store it with toGlobal or toLocal first"
                )
                raise TypeRefused(message)
            case FunCall(ReduceVec() as r, (init, vector)):
                return self.lanes(r, self.view(init, env), self.view(vector, env), expr.type, env)
            case FunCall(Primitive() as p, args):
                values = [self.view(a, env) for a in args]
                if type(p) in CHOOSING:
                    values = [read_inside(v) for v in values]
                if p.function is None:
                    return p.meaning(self.read, *values)
                return p.meaning(self.read, self.closure(p.function, env), *values)
            case _:
                message = f"no view of {type(expr).__name__}"
                raise InternalError(message)

    def closure(self, f: Lambda, env: Env) -> Callable[..., Value]:
        """A function of views."""
        return lambda *values: self.view(
            f.body, {**env, **dict(zip(f.params, values, strict=True))}
        )

    def bound(self, f: Lambda, args: tuple[Expr, ...], env: Env) -> Env:
        """The variables of a let that is read (Note [Values with a name])."""
        values = [self.view(a, env) for a in args]
        return self.given(f, values, self.noted)

    def computed(self, f: Lambda, *values: Value) -> Env:
        """The variables of a function that is emitted here (Note [Values with a name])."""
        return self.given(f, values, self.variable)

    def given(self, f: Lambda, values: Sequence[Value], name: Callable[[Term], Term]) -> Env:
        """A function's variables; `name` is done to what is computed and used more than once."""
        env = dict(zip(f.params, values, strict=True))
        for number, param in enumerate(f.params):
            if is_computed(param.type):
                key = id(f), number
                if key not in self.used:
                    self.used[key] = f, Uses(f.body, param)
                env[param] = self.often(env[param], param.type, self.used[key][1], (), name)
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
            case VectorType() if is_known(value) and parts(leaf(value)) and used.many(component):
                return known(Pull(value.length, lambda i: self.noted(value[i])))
            case ScalarType() if parts(value) and used.many(component):
                return name(value)
            case _:
                return value

    def noted(self, value: Value) -> Value:
        """A value whose scalars are held in variables where they are read."""
        if isinstance(value, tuple):
            return tuple(map(self.noted, value))
        if parts(value):
            self.shared.add(value)
        return value

    def variable(self, term: Term) -> Term:
        """A term in a variable, from now on."""
        self.share(term)
        self.shared.add(term)
        c = self.scalar(term)
        if not isinstance(c, Text):
            message = f"{c} is no variable"
            raise InternalError(message)
        return Variable(c.text, term.type)

    def lanes(self, r: ReduceVec, init: Value, vector: Pull, t: Type, env: Env) -> Term:
        """A fold over lanes as a term."""
        width = int(vector.length)
        _, number = self.folds.setdefault(id(r), (r, len(self.folds)))
        lane = f"lane{number}"
        if not isinstance(t, ScalarType):
            message = f"reduceVec folds to a scalar, not to {t}: fold each component by itself"
            raise TypeRefused(message)
        return Lanes(init, vector[var(lane, 0, width - 1)], lane, width, self.closure(r.f, env), t)

    def materialise(self, m: MemoryPrimitive, arg: Expr, env: Env) -> Value:
        """Store a value in the memory asked for, and read it from there."""
        if isinstance(m, ToGlobal):
            message = "toGlobal inside a kernel can only stand where the result goes"
            raise TypeRefused(message)
        if not isinstance(m, ToLocal):
            value = memory_view(self.fresh("p"), arg.type, self.new_private)
            self.generate(arg, env, value)
            return value
        if self.uneven:
            message = (
                "toLocal needs a barrier that not every work-item would reach: "
                "make the mapLcl around it even"
            )
            raise TypeRefused(message)
        before = len(self.locals)
        value = memory_view(self.fresh("l"), arg.type, self.new_local)
        self.generate(arg, env, value)
        for memory in self.locals[before:]:
            self.put(Barrier(memory))
        return value

    # --- statements ---

    def generate(self, expr: Expr, env: Env, dest: Value) -> None:
        """Code that leaves the value of `expr` in `dest`."""
        match expr:
            case FunCall(MapGlb() | MapWrg() | MapLcl() | MapSeq() as fun, (xs,)):
                source = self.view(xs, env)
                self.loop(
                    fun,
                    int(source.length),
                    lambda i: self.generate(
                        fun.f.body, {**env, **self.computed(fun.f, source[i])}, dest[i]
                    ),
                )
            case FunCall(ReduceSeq() | ReduceSeqUnroll() as fun, (init, xs)):
                self.reduce(fun, init, xs, expr.type, env, dest)
            case FunCall(ScanSeq() as fun, (init, xs)):
                loops.scan(self, fun, init, xs, env, dest)
            case FunCall(IterateSeq() as fun, (x,)):
                loops.iterate(self, fun, x, env, dest)
            case FunCall(SlideSeq() as fun, (xs,)):
                loops.slide(self, fun, xs, env, dest)
            case FunCall(Lambda() as f, args):
                values = [self.view(a, env) for a in args]
                self.generate(f.body, {**env, **self.computed(f, *values)}, dest)
            case FunCall(MemoryPrimitive() as m, (arg,)):
                if isinstance(m, ToGlobal):
                    self.generate(arg, env, dest)
                else:
                    self.copy(self.materialise(m, arg, env), dest)
            case Tuple(elements):
                for k, e in enumerate(elements):
                    self.generate(e, env, dest[k])
            case FunCall(Primitive() as p, args) if (
                inner := self.inner(p, args, dest)
            ) is not None:
                for arg, place in zip(args, inner, strict=True):
                    self.generate(arg, env, place)
            case FunCall(Map() | Reduce() | Scan() | Iterate() as p, _) if type(p) in {
                Map,
                Reduce,
                Scan,
                Iterate,
            } and not is_layout(p):
                message = (
                    f"`{p.name}` has no loop or parallel level: "
                    f"lower it, for instance to {p.name}Seq"
                )
                raise TypeRefused(message)
            case _:
                value = self.view(expr, env)
                if not self.stands_there(value, dest):
                    self.copy(vectors(expr.type, value), dest)

    def inner(self, p: Primitive, args: tuple[Expr, ...], dest: Value) -> tuple[Value, ...] | None:
        """Where the arguments of a layout at the end go; None if they have to be read instead."""
        if not (isinstance(p, LAYOUTS) or type(p) is Map) or not any(map(computes, args)):
            return None
        return through(p, args, dest, self.read)

    def copy(self, value: Value, dest: Value) -> None:
        """Store a value that needs no further computation than its terms."""
        match dest:
            case Pull():
                if isinstance(value, Vector):
                    for lanes, place in by_component(value, dest):
                        self.store_vector(lanes, place)
                else:
                    self.loop(None, int(dest.length), lambda i: self.copy(value[i], dest[i]))
            case tuple():
                for k, part in enumerate(dest):
                    self.copy(value[k], part)
            case Load():
                self.store(dest, value)
            case _:
                message = f"no destination in {type(dest).__name__}"
                raise InternalError(message)

    def stands_there(self, value: Value, dest: Value) -> bool:
        """Whether a value is the memory that it is to be copied to, under its name of now."""
        if isinstance(value, tuple) and isinstance(dest, tuple):
            return all(map(self.stands_there, value, dest))
        if not (is_known(value) and is_known(dest)):
            return False
        source, target = anywhere(value), anywhere(dest)
        return (
            isinstance(source, Load)
            and isinstance(target, Load)
            and source.memory == target.memory
            and source.index == target.index
            and source.alias == self.live.get(source.memory, 0)
            and not (source.alias and self.stored.get((source.alias, source.memory)))
        )

    def loop(
        self,
        fun: MapGlb | MapWrg | MapLcl | MapSeq | None,
        length: int,
        body: Callable[[Nat], None],
    ) -> None:
        """A map's loop: over ids where it is parallel, unrolled if private memory asks for it."""
        match fun:
            case MapGlb():
                self.parallel(
                    f"gid{fun.dim}",
                    f"get_global_id({fun.dim})",
                    self.global_size[fun.dim],
                    length,
                    body,
                )
            case MapWrg():
                groups = self.global_size[fun.dim] // self.local_size[fun.dim]
                self.parallel(f"wid{fun.dim}", f"get_group_id({fun.dim})", groups, length, body)
            case MapLcl():
                size = self.local_size[fun.dim]
                even = length % size == 0
                self.uneven += not even
                self.parallel(f"lid{fun.dim}", f"get_local_id({fun.dim})", size, length, body)
                self.uneven -= not even
            case _:
                self.sequential(length, body, unroll=isinstance(fun, MapSeqUnroll))

    def parallel(
        self, name: str, call: str, launched: int, length: int, body: Callable[[Nat], None]
    ) -> None:
        """The loop over ids; none where the launch covers the extent."""
        self.ids[name] = call
        if launched == length:
            body(var(name, 0, length - 1) if length > 1 else ZERO)
            return
        counter = self.fresh("i")
        self.open(counter)
        body(var(counter, 0, length - 1))
        inner = self.close()
        self.put(For(counter, name, str(length), str(launched), self.closed(inner)))

    def sequential(self, length: int, body: Callable[[Nat], None], *, unroll: bool = False) -> None:
        """A loop of one work-item."""
        if length == 1:
            body(ZERO)
            return
        if not unroll:
            marks = self.mark()
            counter = self.fresh("i")
            self.open(counter)
            try:
                body(var(counter, 0, length - 1))
            except UnrollError as error:
                self.back(marks)
                if counter not in error.names:
                    raise
            else:
                inner = self.close()
                if inner.statements:
                    self.put(For(counter, "0", str(length), "1", self.closed(inner)))
                return
        for i in range(length):
            body(nat(i))

    def closed(self, body: Block) -> Block:
        """A loop body; where it fills local memory, its end waits for those who still read it."""
        filled = [s.memory for s in body.statements if isinstance(s, Barrier)]
        body.statements += [Barrier(memory) for memory in filled]
        return body

    def reduce(
        self, fun: ReduceSeq | ReduceSeqUnroll, init: Expr, xs: Expr, t: Type, env: Env, dest: Value
    ) -> None:
        """A fold into private memory: into `dest` where that is private."""
        if not loops.is_private(dest):
            value = memory_view(self.fresh("acc"), t, self.new_private)
            self.reduce(fun, init, xs, t, env, value)
            self.copy(vectors(t, value), dest)
            return
        self.generate(init, env, dest)
        source = self.view(xs, env)
        loops.accumulate(
            self,
            dest,
            t,
            int(source.length),
            lambda k, held, place: self.generate(
                fun.f.body, {**env, **self.computed(fun.f, held, source[k])}, place
            ),
            unroll=isinstance(fun, ReduceSeqUnroll),
        )

    @contextmanager
    def settled(self, dest: Value) -> Generator[None]:
        """While a step's result is read: what the step has stored is its new value, no hazard."""
        keys = [(self.live.get(m, 0), m) for m in memories_of(dest)]
        stored = {key: self.stored.get(key, set[int]()) for key in keys}
        for key in keys:
            self.stored[key] = set()
        yield
        for key in keys:
            self.stored.setdefault(key, set()).update(stored[key])

    def fold(
        self, dest: Value, length: int, step: Callable[[Nat, Value], None], *, unroll: bool
    ) -> None:
        """The loop of a fold; in `step` the accumulator has a name of its own."""
        memories = memories_of(dest)
        before = {m: self.live.get(m, 0) for m in memories}
        alias = self.fresh_alias()

        def body(k: Nat) -> None:
            for m in memories:
                self.live[m] = alias
                self.stored[alias, m] = set()
            step(k, renamed(dest, alias))

        self.sequential(length, body, unroll=unroll)
        for m in memories:
            written = self.stored.pop((alias, m), set[int]())
            self.live[m] = before[m]
            self.stored.setdefault((before[m], m), set()).update(written)

    def fresh_alias(self) -> int:
        """A name for an accumulator, different from every other."""
        self.counters["#alias"] = self.counters.get("#alias", 0) + 1
        return self.counters["#alias"]

    # --- stores and loads ---

    def store(self, dest: Load, value: Term) -> None:
        """One scalar."""
        if isinstance(value, Load) and value.memory == dest.memory and value.index == dest.index:
            self.check_alias(value, 1)
            return
        self.share(value)
        text = self.scalar(value)
        self.put(Assign(self.place(dest, 1), text))
        self.note_store(dest, 1)

    def store_vector(self, value: Vector, dest: Pull) -> None:
        """All lanes of a vector at once, if the destination allows it."""
        width = int(dest.length)
        if width == 1:
            self.store(dest[ZERO], value[ZERO])
            return
        lane = f"store{width}"
        index = var(lane, 0, width - 1)
        target, term = dest[index], value[index]
        if (
            isinstance(term, Load)
            and isinstance(target, Load)
            and term.memory == target.memory
            and term.index == target.index
        ):
            for k in range(width):
                self.check_alias(value[nat(k)], 1)
            return
        if (target.index - index).names().isdisjoint({lane}):
            self.share(term)
            c, is_vector = self.vector(term, lane, width)
            kind = vector_type(target.type.name, width)
            whole = c if is_vector else CallC(f"({kind})", (c,))
            start = Load(target.memory, target.index.substitute({lane: 0}), target.alias)
            if start.memory.space == "private":
                self.put(Assign(self.place(start, width), whole))
            else:
                pointer = Text(f"&{self.cell(start)}")
                self.put(Do(CallC(f"vstore{width}", (whole, Text("0"), pointer))))
            self.note_store(start, width)
            return
        for k in range(width):
            self.store(dest[nat(k)], value[nat(k)])

    def note_store(self, dest: Load, width: int) -> None:
        """Remember a store, for hazards and for `--stage views`."""
        self.accesses.append(Access(dest.memory, dest.index, width, store=True))
        self.stores += 1
        if dest.memory.space == "private":
            key = self.live.get(dest.memory, 0), dest.memory
            stored = self.stored.setdefault(key, set())
            stored.update(range(int(dest.index), int(dest.index) + width))

    def place(self, dest: Load, width: int) -> C:
        """A memory cell as something to assign to or read."""
        if dest.memory.space == "private":
            if dest.index.constant is None:
                raise UnrollError(dest.index.names())
            return Private(dest.memory, dest.index.constant, width)
        return Text(self.cell(dest))

    def cell(self, place: Load) -> str:
        """A memory cell as C; its index is computed in 64 bits where it may pass 2^31."""
        open_lanes = sorted(n for n in place.index.names() if n.startswith(("store", "lane")))
        if open_lanes:
            message = "a function of vector lanes reads what is stored first: give it toPrivate"
            raise TypeRefused(message)
        index = index_c(place.index, wide=magnitude(place.index) > MAX_INT)
        return f"{place.memory.name}[{index}]"

    def check_alias(self, load: Load, width: int) -> None:
        """Refuse to read an accumulator under an old name, or after it was overwritten."""
        if load.memory.space != "private":
            return
        current = self.live.get(load.memory, 0)
        if load.index.constant is None:
            raise UnrollError(load.index.names())
        start = load.index.constant
        overwritten = self.stored.get((current, load.memory), set())
        if load.alias != current or (
            current and not overwritten.isdisjoint(range(start, start + width))
        ):
            raise HazardError(load.memory)

    def scalar(self, term: Term) -> C:
        """A scalar term as C."""
        match term:
            case Load():
                self.check_alias(term, 1)
                return self.loaded(term, self.place(term, 1), 1)
            case Constant(value, t):
                return literal_c(value, t)
            case FromIndex(index, t):
                return number_c(index, t)
            case Apply(op, args, _):
                return self.held(
                    term, 1, lambda: operator_c(op, [self.scalar(a) for a in args], args)
                )
            case Choice() if term.stable and term not in self.shared:
                return self.named(term, self.unconditional(term), vector_type(term.type.name, 1))
            case Choice():
                return self.held(term, 1, lambda: self.unconditional(term))
            case Lanes():
                return self.held(term, 1, lambda: self.fold_lanes(term))
            case Variable(name, _, lane):
                return Text(name if lane is None else f"{name}.s{lane:x}")

    def unconditional(self, term: Term) -> C:
        """A term behind a condition: nothing of it may be moved in front."""
        if isinstance(term, Load):
            self.check_alias(term, 1)
            self.accesses.append(Access(term.memory, term.index, 1, store=False))
            return self.place(term, 1)
        match term:
            case Apply(op, args, _):
                return self.held_behind(
                    term, lambda: operator_c(op, [self.unconditional(a) for a in args], args)
                )
            case Choice():
                return self.held_behind(term, lambda: self.chosen(term))
            case Lanes():
                message = "a reduceVec cannot stand behind a pad: store its result with toGlobal"
                raise TypeRefused(message)
            case _:
                return self.scalar(term)

    def chosen(self, term: Choice) -> C:
        """One of two scalars."""
        conditions, then, otherwise = guards(term)
        with self.behind(conditions, holds=True):
            inner = self.unconditional(then)
        with self.behind(conditions, holds=False):
            other = self.unconditional(otherwise)
        return Ternary(condition_c(conditions), inner, other)

    def loaded(self, load: Load, c: C, width: int) -> C:
        """A load; from memory that the kernel only reads, each address is loaded once per block."""
        self.accesses.append(Access(load.memory, load.index, width, store=False))
        if load.memory.space == "private" or load.memory.writable:
            return c
        return self.named(
            (load.memory.name, load.index, width), c, vector_type(load.type.name, width)
        )

    # --- vectors ---

    def start(self, index: Nat, lane: str, width: int) -> Nat | None:
        """An index at lane 0, if lane `k` is `k` after it."""
        first = index - var(lane, 0, width - 1)
        return None if lane in first.names() else first

    def vector(self, term: Term, lane: str, width: int) -> tuple[C, bool]:
        """A term over all lanes as C, and whether that is a vector; else every lane equals it."""
        if lane not in term.names:
            return self.scalar(term), False
        if isinstance(term, Choice):
            return self.chosen_lanes(term, lane, width), True
        if not isinstance(term, Apply):
            return self.lanes_of(term, lane, width), True
        return self.held(term, width, lambda: self.applied(term, lane, width)), True

    def applied(self, term: Apply, lane: str, width: int) -> C:
        """An operator applied to all lanes."""
        op, args = term.op, term.args
        parts = [self.vector(a, lane, width) for a in args]
        kinds = [vector_type(a.type.name, width) for a in args]
        if op == "select" and not parts[0][1]:  # a condition that all lanes share
            then, otherwise = (
                c if is_vector else CallC(f"({kind})", (c,))
                for (c, is_vector), kind in zip(parts[1:], kinds[1:], strict=True)
            )
            return Ternary(parts[0][0], then, otherwise)
        narrow = op in INFIX and args[-1].type in FLOATS  # C makes vectors of these itself
        widened = [
            c if is_vector or narrow else CallC(f"({kind})", (c,))
            for (c, is_vector), kind in zip(parts, kinds, strict=True)
        ]
        return operator_c(op, widened, args, width)

    def chosen_lanes(self, term: Choice, lane: str, width: int) -> C:
        """A guarded vector, in a variable if it may be: others with these lanes are the same."""
        c = self.vector_unconditional(term, lane, width)[0]
        if not term.stable:
            return c
        key = ("choice", *(at_lane(self.read, term, lane, k) for k in range(width)))
        return self.named(key, c, vector_type(term.type.name, width))

    def lanes_of(self, term: Term, lane: str, width: int) -> C:
        """All lanes of a load or of an index."""
        if isinstance(term, Lanes):
            message = "a reduceVec cannot stand inside a mapVec: store its result first"
            raise TypeRefused(message)
        first = self.start(term.index, lane, width) if isinstance(term, Load) else None
        if isinstance(term, Load) and first is not None:
            start = Load(term.memory, first, term.alias)
            self.check_alias(start, width)
            if term.memory.space == "private":
                return self.place(start, width)
            pointer = Text(f"&{self.cell(start)}")
            return self.loaded(start, CallC(f"vload{width}", (Text("0"), pointer)), width)
        kind = vector_type(term.type.name, width)
        row = self.row(term, (), lane, width) if term.stable else None
        if row is None:
            lanes = (self.scalar(at_lane(self.read, term, lane, k)) for k in range(width))
            return CallC(f"({kind})", tuple(lanes))
        each = CallC(f"({kind})", tuple(self.lanes_behind(term, lane, width)))
        return self.named(("row", term, width), Ternary(*row, each), kind)

    def row(
        self, term: Term, conditions: Sequence[Inside], lane: str, width: int
    ) -> tuple[C, C] | None:
        """A load of all lanes behind conditions as one, and the tests for that, if it can be one.

        The tests are those of the lanes at the ends: where they fail, lanes are read one by one.
        """
        if not isinstance(term, Load) or term.memory.space == "private":
            return None
        found = in_a_row(term.index, lane, width)
        ends = [at_all(t, lane, 0, width - 1) for c in conditions for t in tests_of(c)]
        if found is None or None in ends:
            return None
        first, tests = found
        start = Load(term.memory, first)
        self.accesses.append(Access(term.memory, first, width, store=False))
        whole = CallC(f"vload{width}", (Text("0"), Text(f"&{self.cell(start)}")))
        needed = (*(end for end in ends if end is not None), *tests)
        return All(tuple(dict.fromkeys(needed))), whole

    def vector_unconditional(self, term: Term, lane: str, width: int) -> tuple[C, bool]:
        """A vector behind a condition: one ternary where all lanes share it, else lane by lane."""
        if lane not in term.names:
            return self.unconditional(term), False
        kind = vector_type(term.type.name, width)
        if isinstance(term, Choice):
            conditions, then, otherwise = guards(term)
            if not any(lane in c.index.names() for c in conditions):

                def part(t: Term, *, holds: bool) -> C:
                    with self.behind(conditions, holds=holds):
                        c, is_vector = self.vector_unconditional(t, lane, width)
                    return c if is_vector else CallC(f"({kind})", (c,))

                inner, other = part(then, holds=True), part(otherwise, holds=False)
                return Ternary(condition_c(conditions), inner, other), True
            row = self.row(then, conditions, lane, width)
            if row is not None:
                each = CallC(f"({kind})", tuple(self.lanes_behind(term, lane, width)))
                return Ternary(*row, each), True
        if isinstance(term, Load) and term.memory.space != "private":
            start = self.start(term.index, lane, width)
            if start is not None:
                self.accesses.append(Access(term.memory, start, width, store=False))
                return CallC(
                    f"vload{width}", (Text("0"), Text(f"&{self.cell(Load(term.memory, start))}"))
                ), True
        return CallC(f"({kind})", tuple(self.lanes_behind(term, lane, width))), True

    def lanes_behind(self, term: Term, lane: str, width: int) -> Iterator[C]:
        """Lanes behind a condition, each by itself."""
        for k in range(width):
            one = at_lane(self.read, term, lane, k)
            self.share(one)
            yield self.unconditional(one)

    def fold_lanes(self, term: Lanes) -> C:
        """A fold over lanes: `dot` for a sum of products of up to four lanes, else lane by lane."""
        if term.width == 1:
            return self.scalar(term.step(term.init, at_lane(self.read, term.vector, term.lane, 0)))
        probe = Variable("probe", term.type, 0), Variable("probe", term.vector.type, 1)
        adds = term.step(*probe) is self.read.operate("+", probe)
        product = term.vector
        zero = isinstance(term.init, Constant) and term.init.value == 0
        if adds and isinstance(product, Apply) and product.op == "*" and term.type.name == "f32":
            factors = [self.whole(a, term.lane, term.width) for a in product.args]
            parts: list[C] = [] if zero else [self.scalar(term.init)]
            for start in range(0, term.width, 4):
                stop = min(start + 4, term.width)
                part = CallC("dot", tuple(lanes_c(f, start, stop, term.width) for f in factors))
                parts.append(part)
            return functools.reduce(lambda total, part: Infix("+", total, part), parts)
        name = self.whole(term.vector, term.lane, term.width).text
        result = term.init
        for k in range(term.width):
            result = term.step(result, Variable(name, term.vector.type, k))
            if repeated(result):  # nested, the steps would be deeper than Python goes
                result = self.variable(result)
        return self.scalar(result)

    def whole(self, term: Term, lane: str, width: int) -> Text:
        """A vector in a variable, so that its lanes can be named."""
        c, is_vector = self.vector(term, lane, width)
        if isinstance(c, Text) and is_vector:
            return c
        kind = vector_type(term.type.name, width)
        return self.declare(kind, c if is_vector else CallC(f"({kind})", (c,)))


def is_computed(t: Type) -> bool:
    """Whether values of a type may be held in variables: scalars, vectors, tuples of them."""
    if isinstance(t, TupleType):
        return any(map(is_computed, t.elements))
    return isinstance(t, ScalarType | VectorType)


def anywhere(value: Value) -> Value:
    """The element of a pull array at unknown indices."""
    depth = 0
    while isinstance(value, Pull):
        value = value[var(f"any{depth}", 0, int(value.length) - 1)]
        depth += 1
    return value


def by_component(value: Vector, dest: Pull) -> Iterator[tuple[Vector, Pull]]:
    """A vector of tuples as vectors of its components, each with where it goes."""
    first = dest[ZERO]
    if not isinstance(first, tuple):
        yield value, dest
        return
    for k in range(len(first)):
        part = Vector(value.length, lambda i, k=k: value[i][k])
        yield from by_component(part, Pull(dest.length, lambda i, k=k: dest[i][k]))


def renamed(value: Value, alias: int) -> Value:
    """The same memory under another name."""
    match value:
        case Pull():
            return type(value)(value.length, lambda i: renamed(value[i], alias))
        case tuple():
            return tuple(renamed(part, alias) for part in value)
        case _:
            return Load(value.memory, value.index, alias)
