"""The contract of primitives, judged on one general instance of each, its sizes symbols.

C1  the lengths of the meaning are those of `type_of`, at every depth, and not negative
C2  every element that the meaning reads is inside its array; a clipped read, where it is chosen,
    and then the array has an element to clip to
C3  `reference` agrees with the meaning on distinct elements, at many sizes (tried, not proved)
C4  `inverse` after the primitive leaves every element where it was, and so does the primitive after
    `inverse`: what is written through an inverse fills its destination; a constant that an inverse
    puts somewhere is no place, and what would be written there leads nowhere
C5  `requires` can hold for more than 8 elements, and each clause is needed by C1, C2 or C4, or says
    what the primitive is and has its reason in the class (`by_definition`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import z3

from liftpy.errors import TypeRefused, UnknownName
from liftpy.ir.constraint import Constraint, Everywhere
from liftpy.ir.denote import denote
from liftpy.ir.expr import Expr, FunCall, Get, Param, Primitive, call, index_fields
from liftpy.ir.nat import INDEX, Applied, Atom, atom, var
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.show import operands
from liftpy.ir.types import I32, ArrayType, TupleType, Type, VectorType
from liftpy.primitives import (
    PRIMITIVES,
    AsScalar,
    AsVector,
    Generate,
    Iterate,
    Map,
    MapVec,
    Reduce,
    ReduceVec,
    Reorder,
    Scan,
    SlideSeq,
    Unzip,
)
from liftpy.rewrite.rule import ValueVar
from liftpy.rewrite.rules.notation import S, T, U, array, function, k, m, n, unknown
from liftpy.semantics.agree import Hypotheses, Proof
from liftpy.semantics.opinion import disagreement
from liftpy.semantics.smt import TIMEOUT_MS, ask
from liftpy.semantics.symbolic import Part, components
from liftpy.semantics.verdict import Open, Proved, Refuted, Unknown, Vacuous, Verdict

Instance = tuple[Primitive, tuple[Param, ...]]

LENGTHS = "C1 the lengths of the meaning are those of the type, and not negative"
INSIDE = "C2 every element that is read is inside its array"
REFERENCE = "C3 the reference agrees with the meaning at many sizes"
BACK = "C4 the inverse leads every element back"
FORTH = "C4 the primitive leads every element of its inverse back"
POSSIBLE = "C5 what is required can hold for more than 8 elements"
NEEDED = "C5 each clause of what is required is needed"

width, size = var("v"), var("size")
z, x = Param("z", U), Param("x", T)
xs, ys, zs = array("xs", T, n), array("ys", T, k), array("zs", U, k)
xss = array("xss", T, n, m)
f = unknown("f", U)

#: What stands in an inverse for the constant that is no place.
NOWHERE = ValueVar("nowhere")

#: What a field of a primitive is in its general instance, by the field's type and name.
UNKNOWN: dict[str, Callable[[str], Any]] = {
    "Nat": lambda name: var(name, None),
    "IndexFunction": lambda name: atom(Applied(name, var(INDEX))),
    "float": ValueVar,
}

#: General instances that do not follow from the fields; a base class's serves its heirs.
GENERAL: dict[type[Primitive], Callable[[Any], Instance]] = {
    Map: lambda p: (p(function(f, x=T)), (xs,)),
    Reduce: lambda p: (p(function(f, a=U, x=T)), (z, xs)),
    Unzip: lambda p: (p(), (array("pairs", TupleType((T, U)), n),)),
    Get: lambda p: (p(1), (Param("pair", TupleType((T, U))),)),
    Generate: lambda p: (p(var("length", None), function(f, i=I32)), ()),
    Scan: lambda p: (p(function(f, a=U, x=T)), (z, xs)),
    Iterate: lambda p: (p(function(unknown("f", T), x=T), var("times", None)), (x,)),
    SlideSeq: lambda p: (p(function(f, w=ArrayType(T, size)), size, var("step")), (xs,)),
    AsVector: lambda p: (p(width), (array("xs", S, n),)),
    AsScalar: lambda p: (p(), (array("xs", VectorType(S, width), n),)),
    MapVec: lambda p: (p(function(f, x=S)), (Param("xs", VectorType(S, width)),)),
    ReduceVec: lambda p: (p(function(f, a=U, x=S)), (z, Param("xs", VectorType(S, width)))),
}


def general(cls: type[Primitive]) -> Instance:
    """One instance of a primitive, as general as its type allows: its sizes symbols."""
    for base in cls.__mro__:
        if base in GENERAL:
            return GENERAL[base](cls)
    kinds = {f.name: str(f.type) for f in fields(cls) if f.init}
    if kinds.keys() & {"f"} or not all(kind in UNKNOWN for kind in kinds.values()):
        raise UnknownName(f"{cls.name} has fields of its own: add it to GENERAL in {__name__}")
    primitive = cls(**{name: UNKNOWN[kind](name) for name, kind in kinds.items()})
    taken = operands(cls)
    for params in ((x,), (xs,), (xss,), (xs, zs), (xs, ys)):
        if len(params) == (2 if taken is None else taken) and accepts(primitive, params):
            return primitive, params
    raise UnknownName(f"{cls.name} takes no plain array: add it to GENERAL in {__name__}")


def accepts(primitive: Primitive, params: tuple[Param, ...]) -> bool:
    """Whether parameters of these types may be given to a primitive, their sizes aside."""
    types = tuple(p.type for p in params)
    try:
        primitive.type_of(*types)
        list(primitive.requires(*types))
    except TypeRefused:
        return False
    return True


def prove_primitive(name: str, timeout_ms: int = TIMEOUT_MS) -> Verdict:
    """Whether a primitive keeps its contract. `timeout_ms` is for each query."""
    if name not in PRIMITIVES:
        raise UnknownName(f"there is no primitive {name}; there are {', '.join(PRIMITIVES)}")
    return prove_instance(*general(PRIMITIVES[name]), timeout_ms)


def prove_instance(
    primitive: Primitive, params: tuple[Param, ...], timeout_ms: int = TIMEOUT_MS
) -> Verdict:
    """Whether a primitive keeps its contract on parameters."""
    clauses = tuple(primitive.requires(*(p.type for p in params)))
    proof = started(params, clauses, timeout_ms)
    free = [c for c in clauses if not isinstance(c, Everywhere)]  # some index function does
    possible = started(params, tuple(free), timeout_ms)
    answer = ask([*possible.terms.facts, *possible.hypotheses, *possible.preferred], timeout_ms)
    if answer.status == "unsat":
        return Vacuous(f"{POSSIBLE}: {', '.join(map(str, clauses))}")
    if answer.status == "unknown":
        return Unknown(POSSIBLE, f"z3 gave up: {answer.reason}")
    try:
        keep(proof, primitive, params)
    except Open as left:
        if left.sizes is None:
            return Unknown(left.obligation, left.reason)
        return Refuted(left.obligation, witness(left.sizes))
    words = disagreement(*(instance_to_try(primitive, params)))
    if words is not None:
        return Refuted(REFERENCE, words)
    idle = next(needless(primitive, params, clauses, timeout_ms), None)
    if idle is not None:
        return Refuted(NEEDED, f"C1, C2 and C4 hold without {idle}")
    return Proved((*proof.shown, REFERENCE, POSSIBLE, NEEDED))


def instance_to_try(primitive: Primitive, params: tuple[Param, ...]) -> Instance:
    """The instance with what is unknown about indices chosen: a rotation, every third element."""
    i, length = var(INDEX), next((n for p in params for n in p.type.lengths()), None)
    if length is not None and any(isinstance(a, Applied) for a in unknown_indices(primitive)):
        if isinstance(primitive, Reorder):
            return Reorder((i + 1) % length, (i + length - 1) % length), params
        by = dict.fromkeys(index_fields(type(primitive)), (3 * i + 1) % length)
        return replace(primitive, **by), params
    return primitive, params


def unknown_indices(primitive: Primitive) -> Iterator[Atom]:
    """What the index functions of a primitive are made of."""
    for name in index_fields(type(primitive)):
        yield from getattr(primitive, name).atoms()


def witness(sizes: dict[str, int]) -> str:
    """Sizes in words; indices that the prover made are named by their number."""
    return ", ".join(
        f"{name.rstrip('#')} = {sizes[name]}" for name in sorted(sizes) if "!" not in name
    )


def started(params: tuple[Param, ...], clauses: tuple[Constraint, ...], timeout_ms: int) -> Proof:
    """A proof that assumes clauses, and prefers larger arrays for its counterexamples."""
    proof = Proof(timeout_ms=timeout_ms)
    proof.hypotheses = [proof.terms.assume(c) for c in clauses]
    outer = [next(p.type.lengths(), None) for p in params]
    long = [proof.terms.nat(length) > 8 for length in outer if length is not None]
    proof.preferred = [z3.Or(long)] if long else []
    return proof


def needless(
    primitive: Primitive,
    params: tuple[Param, ...],
    clauses: tuple[Constraint, ...],
    timeout_ms: int,
) -> Iterator[Constraint]:
    """The clauses without which C1, C2 and C4 still hold, except those that say what it is."""
    for position, clause in enumerate(clauses):
        if str(clause) in primitive.by_definition:
            continue
        rest = (*clauses[:position], *clauses[position + 1 :])
        try:
            keep(started(params, rest, timeout_ms), primitive, params)
        except Open:
            continue
        yield clause


def keep(proof: Proof, primitive: Primitive, params: tuple[Param, ...]) -> None:
    """Show C1, C2 and C4; raises `Open`."""
    applied = FunCall(primitive, params)
    env = {p: proof.reader.leaf(p.name, p.type) for p in params}
    visit(proof, denote(applied, env, proof.reader), applied.type, ())
    types = tuple(p.type for p in params)
    inverse = primitive.inverse(*types)
    if inverse is not None:
        results = tuple(applied) if isinstance(applied.type, TupleType) else (applied,)
        needed = inverse.requires(*(r.type for r in results))
        proof.hypotheses += [proof.terms.assume(condition) for condition in needed]
        values = tuple(env[p] for p in params)
        original = values if len(params) > 1 else values[0]
        constants = [f.name for f in fields(inverse) if f.type == "float"]
        marked = replace(inverse, **dict.fromkeys(constants, NOWHERE))
        returned = denote(call(marked, *results), env, proof.reader)
        proof.agree(written(proof, returned, original), original, (), BACK)
        fill(proof, primitive, inverse, results)


def written(proof: Proof, returned: Value, original: Value) -> Value:
    """What an inverse leads back, and the original where that is no place."""
    match returned:
        case Pull():
            return Pull(returned.length, lambda i: written(proof, returned[i], original[i]))
        case tuple() | Parts():
            pairs = zip(components(returned), components(original), strict=True)
            return tuple(written(proof, r, o) for r, o in pairs)
        case _:
            value = proof.reader.scalar(returned)
            nowhere = proof.reader.constant(NOWHERE, value.sort())
            return z3.If(value == nowhere, proof.reader.scalar(original), value)


def fill(proof: Proof, primitive: Primitive, inverse: Primitive, results: tuple[Expr, ...]) -> None:
    """Show the second half of C4; raises `Open`."""
    given = tuple(Param(f"result {k}", r.type) for k, r in enumerate(results))
    env = {p: proof.reader.leaf(p.name, p.type) for p in given}
    undone = call(inverse, *given)
    parts = tuple(undone) if isinstance(undone.type, TupleType) else (undone,)
    again = denote(call(primitive, *parts), env, proof.reader)
    places = tuple(env[p] for p in given)
    proof.agree(again, places if len(given) > 1 else places[0], (), FORTH)


def visit(proof: Proof, value: Value, t: Type, hypotheses: Hypotheses) -> None:
    """Show C1 and C2 for a value and everything in it."""
    match t, value:
        case ((ArrayType(element, length) | VectorType(element, length)), Pull()):
            meant, typed = proof.terms.nat(value.length), proof.terms.nat(length)
            proof.show(LENGTHS, z3.And(meant == typed, typed >= 0), hypotheses)
            i, in_range = proof.index(length)
            visit(proof, value[i], element, (*hypotheses, in_range))
        case TupleType(elements), (tuple() | Parts()):
            for part, part_type in zip(components(value), elements, strict=True):
                visit(proof, part, part_type, hypotheses)
        case _, Part():
            step, in_range = proof.index(value.fold.length)
            state = proof.reader.state(value.fold.init)
            visit(proof, value.fold.init, t, hypotheses)
            visit(proof, value.fold.step(step, state), t, (*hypotheses, in_range))
        case _, Pull() | tuple() | Parts():
            raise Open(LENGTHS, f"the type is {t}, the meaning is a {type(value).__name__}")
        case _:
            visit_reads(proof, hypotheses)


def visit_reads(proof: Proof, hypotheses: Hypotheses) -> None:
    """Show C2 for the elements that were read since this was last asked."""
    terms, reads = proof.terms, proof.reader.reads
    proof.reader.reads = []
    for read in reads:
        index, length = terms.nat(read.index), terms.nat(read.length)
        within = z3.And(index >= 0, index < length)
        if read.index in proof.reader.clipped:
            below = terms.nat(proof.reader.clipped[read.index])
            within = z3.And(length >= 1, z3.Implies(z3.And(index >= 0, index < below), within))
        proof.show(INSIDE, within, hypotheses)
