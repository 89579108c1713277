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
elements by their index. Indices are compared by the names of their variables; so a name stands for
one range only: a loop counter's name is not used again, not even after the emission went back, and
the lanes of each fold in the program have a name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.expr import Expr, FunCall, Lambda, Literal, Param, Primitive, Tuple, UserFun
from liftpy.ir.nat import ZERO, Nat, nat, var
from liftpy.ir.pull import Known, Parts, Pull, Value, known
from liftpy.ir.types import ArrayType, ScalarType, TupleType, Type, VectorType
from liftpy.ir.walk import children
from liftpy.kernels.chain import Kernel
from liftpy.opencl.c import (
    MAX_INT,
    Assign,
    Barrier,
    Block,
    C,
    CallC,
    Declare,
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
from liftpy.opencl.terms import (
    INFIX,
    at_lane,
    condition_c,
    depends,
    guards,
    is_stable,
    lanes_c,
    literal_c,
    number_c,
    operator_c,
)
from liftpy.primitives import (
    LAYOUTS,
    Map,
    MapGlb,
    MapLcl,
    MapSeq,
    MapWrg,
    Reduce,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceVec,
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
    Lane,
    Lanes,
    Load,
    Memory,
    Term,
    leaf,
    memory_view,
)
from liftpy.views.output import through

Env = dict[Param, Value]
UNREPEATED = frozenset({"i"})  # stems of variables with a range; see Note [Known views]


def is_known(value: Value) -> bool:
    """Whether pulling a value's elements again gives the same ones."""
    match value:
        case Known():
            return True
        case Pull():
            return False
        case Parts(pairs):
            return is_known(pairs)
        case tuple():
            return all(is_known(part) for part in value)
        case _:
            return True


class UnrollError(Exception):
    """A private memory is indexed by loop variables; never leaves this module."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


class HazardError(Exception):
    """An accumulator in place is read too late; never leaves this module."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.name)
        self.memory = memory


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
    privates: int
    locals: int
    accesses: int
    live: dict[Memory, int]
    stored: dict[int, set[int]]
    uneven: int


@dataclass
class Emitter:
    """The state of one kernel's emission."""

    kernel: Kernel
    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int]
    counters: dict[str, int] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=lambda: [Block()])
    privates: list[Memory] = field(default_factory=list)
    locals: list[Memory] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    live: dict[Memory, int] = field(default_factory=dict)
    stored: dict[int, set[int]] = field(default_factory=dict)
    uneven: int = 0
    views: dict[tuple[int, ...], tuple[Expr, tuple[Value, ...], Value]] = field(
        default_factory=dict
    )
    pure: dict[int, tuple[Expr, bool]] = field(default_factory=dict)
    folds: dict[int, tuple[ReduceVec, int]] = field(default_factory=dict)
    starts: dict[tuple[Nat, str], Nat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read = AccessReader()

    # --- bookkeeping ---

    def fresh(self, stem: str) -> str:
        """A new name, numbered per stem."""
        number = self.counters.get(stem, 0)
        self.counters[stem] = number + 1
        return f"{stem}{number}"

    @property
    def block(self) -> Block:
        """The innermost open block."""
        return self.blocks[-1]

    def put(self, statement: Any) -> None:
        """Append a statement."""
        self.block.statements.append(statement)

    def mark(self) -> Marks:
        """Note where the emission is."""
        return Marks(
            dict(self.counters),
            len(self.privates),
            len(self.locals),
            len(self.accesses),
            dict(self.live),
            {k: set(v) for k, v in self.stored.items()},
            self.uneven,
        )

    def back(self, marks: Marks) -> None:
        """Forget what was emitted since."""
        kept = {stem: n for stem, n in self.counters.items() if stem in UNREPEATED}
        self.counters = marks.counters | kept
        del self.privates[marks.privates :]
        del self.locals[marks.locals :]
        del self.accesses[marks.accesses :]
        self.live = dict(marks.live)
        self.stored = {k: set(v) for k, v in marks.stored.items()}
        self.uneven = marks.uneven

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
            stores = isinstance(expr, FunCall) and isinstance(expr.fun, MemoryPrimitive | Reduce)
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
            case FunCall(Reduce(), _):
                value = memory_view(self.fresh("acc"), expr.type, self.new_private)
                self.generate(expr, env, value)
                return value
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
        """The variables of a let."""
        return dict(zip(f.params, [self.view(a, env) for a in args], strict=True))

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
                (param,) = fun.f.params
                self.loop(
                    fun,
                    int(source.length),
                    lambda i: self.generate(fun.f.body, {**env, param: source[i]}, dest[i]),
                )
            case FunCall(ReduceSeq() | ReduceSeqUnroll() as fun, (init, xs)):
                self.reduce(fun, init, xs, expr.type, env, dest)
            case FunCall(Lambda() as f, args):
                self.generate(f.body, {**env, **self.bound(f, args, env)}, dest)
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
            case FunCall(Map() | Reduce() as p, _) if type(p) in {Map, Reduce} and not is_layout(p):
                message = (
                    f"`{p.name}` has no loop or parallel level: "
                    f"lower it, for instance to {p.name}Seq"
                )
                raise TypeRefused(message)
            case _:
                self.copy(vectors(expr.type, self.view(expr, env)), dest)

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
                    self.store_vector(value, dest)
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
                self.sequential(length, body)

    def parallel(
        self, name: str, call: str, launched: int, length: int, body: Callable[[Nat], None]
    ) -> None:
        """The loop over ids; none where the launch covers the extent."""
        self.ids[name] = call
        if launched == length:
            body(var(name, 0, length - 1) if length > 1 else ZERO)
            return
        counter = self.fresh("i")
        self.blocks.append(Block())
        body(var(counter, 0, length - 1))
        inner = self.blocks.pop()
        self.put(For(counter, name, str(length), str(launched), self.closed(inner)))

    def sequential(self, length: int, body: Callable[[Nat], None], *, unroll: bool = False) -> None:
        """A loop of one work-item."""
        if length == 1:
            body(ZERO)
            return
        if not unroll:
            marks = self.mark()
            depth = len(self.blocks)
            counter = self.fresh("i")
            self.blocks.append(Block())
            try:
                body(var(counter, 0, length - 1))
            except UnrollError as error:
                del self.blocks[depth:]
                self.back(marks)
                if counter not in error.names:
                    raise
            else:
                inner = self.blocks.pop()
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
        place = leaf(dest)
        if not isinstance(place, Load):
            message = f"no destination in {type(place).__name__}"
            raise InternalError(message)
        if place.memory.space != "private":
            value = memory_view(self.fresh("acc"), t, self.new_private)
            self.reduce(fun, init, xs, t, env, value)
            self.copy(vectors(t, value), dest)
            return
        self.generate(init, env, dest)
        source = self.view(xs, env)
        acc, x = fun.f.params

        def fold(step: Callable[[Env], None]) -> None:
            self.fold(
                dest,
                int(source.length),
                lambda k, held: step({**env, acc: held, x: source[k]}),
                unroll=isinstance(fun, ReduceSeqUnroll),
            )

        marks, depth, size = self.mark(), len(self.blocks), len(self.block.statements)
        known = dict(self.block.loads)
        try:
            fold(lambda inner: self.generate(fun.f.body, inner, dest))
        except HazardError as hazard:
            if hazard.memory not in memories_of(dest):
                raise
            del self.blocks[depth:]
            del self.block.statements[size:]
            self.block.loads = known
            self.back(marks)

            def step(inner: Env) -> None:
                value = memory_view(self.fresh("next"), t, self.new_private)
                self.generate(fun.f.body, inner, value)
                self.copy(vectors(t, value), dest)

            fold(step)

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
            self.stored[alias] = set()
            step(k, renamed(dest, alias))

        self.sequential(length, body, unroll=unroll)
        written = self.stored.pop(alias, set[int]())
        for m in memories:
            self.live[m] = before[m]
            self.stored.setdefault(before[m], set()).update(written)

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
        if dest.memory.space == "private":
            stored = self.stored.setdefault(self.live.get(dest.memory, 0), set())
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
        overwritten = self.stored.get(current, set())
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
                return operator_c(op, [self.scalar(a) for a in args], args[-1].type)
            case Choice():
                c = self.unconditional(term)
                return (
                    self.named(("choice", term), c, vector_type(term.type.name, 1))
                    if is_stable(term)
                    else c
                )
            case Lanes():
                return self.fold_lanes(term)
            case Lane(name, lane, _):
                return Text(f"{name}.s{lane:x}")

    def unconditional(self, term: Term) -> C:
        """A term behind a condition: nothing of it may be moved in front."""
        if isinstance(term, Load):
            self.check_alias(term, 1)
            self.accesses.append(Access(term.memory, term.index, 1, store=False))
            return self.place(term, 1)
        match term:
            case Apply(op, args, _):
                return operator_c(op, [self.unconditional(a) for a in args], args[-1].type)
            case Choice():
                conditions, then, otherwise = guards(term)
                return Ternary(
                    condition_c(conditions),
                    self.unconditional(then),
                    self.unconditional(otherwise),
                )
            case Lanes():
                message = "a reduceVec cannot stand behind a pad: store its result with toGlobal"
                raise TypeRefused(message)
            case _:
                return self.scalar(term)

    def loaded(self, load: Load, c: C, width: int) -> C:
        """A load; from memory that the kernel only reads, each address is loaded once per block."""
        self.accesses.append(Access(load.memory, load.index, width, store=False))
        if load.memory.space == "private" or load.memory.writable:
            return c
        return self.named(
            (load.memory.name, load.index, width), c, vector_type(load.type.name, width)
        )

    def named(self, key: object, c: C, kind: str) -> C:
        """The variable that holds a value, declared at its first use."""
        for block in reversed(self.blocks):
            if key in block.loads:
                return block.loads[key]
        name = Text(self.fresh("v"))
        self.put(Declare(kind, name.text, c))
        self.block.loads[key] = name
        return name

    # --- vectors ---

    def start(self, index: Nat, lane: str) -> Nat:
        """An index at lane 0."""
        key = (index, lane)
        if key not in self.starts:
            self.starts[key] = index.substitute({lane: 0})
        return self.starts[key]

    def vector(self, term: Term, lane: str, width: int) -> tuple[C, bool]:
        """A term over all lanes as C, and whether that is a vector; else every lane equals it."""
        if not depends(term, lane):
            return self.scalar(at_lane(term, lane, 0)), False
        match term:
            case Load(memory, index, alias):
                start = Load(memory, self.start(index, lane), alias)
                if index - var(lane, 0, width - 1) == start.index:
                    self.check_alias(start, width)
                    if memory.space == "private":
                        return self.place(start, width), True
                    pointer = Text(f"&{self.cell(start)}")
                    return self.loaded(
                        start, CallC(f"vload{width}", (Text("0"), pointer)), width
                    ), True
            case Apply(op, args, _):
                parts = [self.vector(a, lane, width) for a in args]
                kinds = [vector_type(a.type.name, width) for a in args]
                alone = {0} if op == "select" else set[int]()  # a condition that all lanes share
                widened = [
                    c if is_vector or op in INFIX or k in alone else CallC(f"({kind})", (c,))
                    for k, ((c, is_vector), kind) in enumerate(zip(parts, kinds, strict=True))
                ]
                return operator_c(op, widened, args[-1].type), True
            case Lanes():
                message = "a reduceVec cannot stand inside a mapVec: store its result first"
                raise TypeRefused(message)
            case Choice():
                c = self.vector_unconditional(term, lane, width)[0]
                if not is_stable(term):
                    return c, True
                key = ("choice", *(at_lane(term, lane, k) for k in range(width)))
                return self.named(key, c, vector_type(term.type.name, width)), True
            case _:
                pass
        kind = vector_type(term.type.name, width)
        return CallC(
            f"({kind})", tuple(self.scalar(at_lane(term, lane, k)) for k in range(width))
        ), True

    def vector_unconditional(self, term: Term, lane: str, width: int) -> tuple[C, bool]:
        """A vector behind a condition: one ternary where all lanes share it, else lane by lane."""
        if not depends(term, lane):
            return self.unconditional(at_lane(term, lane, 0)), False
        kind = vector_type(term.type.name, width)
        if isinstance(term, Choice):
            conditions, then, otherwise = guards(term)
            if not any(lane in c.index.names() for c in conditions):
                parts = (self.vector_unconditional(t, lane, width) for t in (then, otherwise))
                inner, other = (c if vec else CallC(f"({kind})", (c,)) for c, vec in parts)
                return Ternary(condition_c(conditions), inner, other), True
        if isinstance(term, Load) and term.memory.space != "private":
            start = self.start(term.index, lane)
            if term.index - var(lane, 0, width - 1) == start:
                self.accesses.append(Access(term.memory, start, width, store=False))
                return CallC(
                    f"vload{width}", (Text("0"), Text(f"&{self.cell(Load(term.memory, start))}"))
                ), True
        return CallC(
            f"({kind})", tuple(self.unconditional(at_lane(term, lane, k)) for k in range(width))
        ), True

    def fold_lanes(self, term: Lanes) -> C:
        """A fold over lanes: `dot` for a sum of products of up to four lanes, else lane by lane."""
        if term.width == 1:
            return self.scalar(term.step(term.init, at_lane(term.vector, term.lane, 0)))
        probe = tuple(Lane("probe", k, term.type) for k in (0, 1))
        adds = term.step(*probe) == Apply("+", probe, term.type)
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
            result = term.step(result, Lane(name, k, term.type))
        return self.scalar(result)

    def whole(self, term: Term, lane: str, width: int) -> Text:
        """A vector in a variable, so that its lanes can be named."""
        c, is_vector = self.vector(term, lane, width)
        if isinstance(c, Text) and is_vector:
            return c
        kind = vector_type(term.type.name, width)
        name = self.fresh("v")
        self.put(Declare(kind, name, c if is_vector else CallC(f"({kind})", (c,))))
        return Text(name)


class Vector(Pull):
    """A pull array that is a vector: its lanes are stored together."""


def vectors(t: Type, value: Value) -> Value:
    """A value with its vectors marked as such."""
    match t:
        case VectorType():
            return Vector(value.length, value.__getitem__)
        case ArrayType(element, _):
            return Pull(value.length, lambda i: vectors(element, value[i]))
        case TupleType(elements):
            return tuple(vectors(e, value[k]) for k, e in enumerate(elements))
        case _:
            return value


def memories_of(value: Value) -> list[Memory]:
    """The memories that a destination consists of."""
    match value:
        case Pull():
            return memories_of(value[ZERO])
        case Parts() | tuple():
            return [m for part in value for m in memories_of(part)]
        case _:
            return [value.memory]


def renamed(value: Value, alias: int) -> Value:
    """The same memory under another name."""
    match value:
        case Pull():
            return type(value)(value.length, lambda i: renamed(value[i], alias))
        case tuple():
            return tuple(renamed(part, alias) for part in value)
        case _:
            return Load(value.memory, value.index, alias)
