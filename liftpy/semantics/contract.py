"""The contract of primitives, judged on one general instance of each, its sizes symbols.

C1  the lengths of the meaning are those of `type_of`, at every depth, and not negative
C2  every element that the meaning reads is inside its array; a clipped read, where it is chosen,
    and then the array has an element to clip to
C3  `reference` agrees with the meaning on distinct elements, at many sizes (tried, not proved)
C4  what `inverse` does after the primitive leaves every element where it was
C5  `requires` can hold for more than 8 elements, and each clause is needed by C1, C2 or C4, or says
    what the primitive is and has its reason in `BY_DEFINITION`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import z3

from liftpy.errors import UnknownName
from liftpy.ir.constraint import Constraint
from liftpy.ir.denote import denote
from liftpy.ir.expr import FunCall, Get, Param, Primitive, call
from liftpy.ir.nat import atom, var
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.primitives import (
    PRIMITIVES,
    AsScalar,
    AsVector,
    Iterate,
    Join,
    Map,
    MapVec,
    Memory,
    Pad,
    Reduce,
    ReduceVec,
    Reorder,
    Scan,
    Slide,
    SlideSeq,
    Split,
    Transpose,
    Unzip,
    Zip,
)
from liftpy.primitives.transpose import Permutes
from liftpy.rewrite.rule import ValueVar
from liftpy.rewrite.rules.notation import S, T, U, array, function, k, m, n, unknown
from liftpy.semantics.agree import Hypotheses, Proof
from liftpy.semantics.opinion import disagreement
from liftpy.semantics.smt import TIMEOUT_MS, Applied, ask
from liftpy.semantics.symbolic import Part, components
from liftpy.semantics.verdict import Open, Proved, Refuted, Unknown, Vacuous, Verdict

Instance = tuple[Primitive, tuple[Param, ...]]

LENGTHS = "C1 the lengths of the meaning are those of the type, and not negative"
INSIDE = "C2 every element that is read is inside its array"
REFERENCE = "C3 the reference agrees with the meaning at many sizes"
BACK = "C4 the inverse leads every element back"
POSSIBLE = "C5 what is required can hold for more than 8 elements"
NEEDED = "C5 each clause of what is required is needed"

width, size = var("v"), var("size")
z, x = Param("z", U), Param("x", T)
xs, ys, xss = array("xs", T, n), array("ys", U, k), array("xss", T, n, m)
f = unknown("f", U)
amounts = var("left", None), var("right", None)
permutation, back = (atom(Applied(name, var("i"))) for name in ("phi", "psi"))

#: One instance of each primitive, as general as its type allows; a base class's serves its heirs.
GENERAL: dict[type[Primitive], Callable[[Any], Instance]] = {
    Map: lambda p: (p(function(f, x=T)), (xs,)),
    Reduce: lambda p: (p(function(f, a=U, x=T)), (z, xs)),
    Scan: lambda p: (p(function(f, a=U, x=T)), (z, xs)),
    Iterate: lambda p: (p(function(unknown("f", T), x=T), var("times", None)), (x,)),
    SlideSeq: lambda p: (p(function(f, w=ArrayType(T, size)), size, var("step")), (xs,)),
    Zip: lambda p: (p(), (xs, ys)),
    Unzip: lambda p: (p(), (array("pairs", TupleType((T, U)), n),)),
    Get: lambda p: (p(1), (Param("pair", TupleType((T, U))),)),
    Split: lambda p: (p(m), (xs,)),
    Join: lambda p: (p(), (xss,)),
    Slide: lambda p: (p(size, var("step")), (xs,)),
    Pad: lambda p: (p(*amounts, ValueVar("c")), (xs,)),
    Transpose: lambda p: (p(), (xss,)),
    Reorder: lambda p: (p(permutation, back), (xs,)),
    AsVector: lambda p: (p(width), (array("xs", S, n),)),
    AsScalar: lambda p: (p(), (array("xs", VectorType(S, width), n),)),
    MapVec: lambda p: (p(function(f, x=S)), (Param("xs", VectorType(S, width)),)),
    ReduceVec: lambda p: (p(function(f, a=U, x=S)), (z, Param("xs", VectorType(S, width)))),
    Memory: lambda p: (p(), (x,)),
}

#: Clauses that no obligation needs, and why they stand.
BY_DEFINITION: dict[tuple[str, str], str] = {
    ("split", "1 <= m"): "`m divides n` says it too; this one makes the better message",
    ("join", "1 <= m"): "indices are divided by it, though an empty row leaves no index",
    ("slide", "1 <= size"): "a window has an element",
    ("slideSeq", "1 <= size"): "a window has an element",
    ("slideSeq", "step <= size"): "what windows share stays in registers",
    ("iterate", "0 <= times"): "nothing is done fewer times than never",
    ("iterateSeq", "0 <= times"): "nothing is done fewer times than never",
    ("transpose", "1 <= n"): "the inner length is that of the first row",
    ("asVector", "v divides 16"): "OpenCL has vectors of 2, 4, 8 and 16 lanes",
}


def general(cls: type[Primitive]) -> Instance:
    """The general instance of a primitive."""
    for base in cls.__mro__:
        if base in GENERAL:
            return GENERAL[base](cls)
    raise UnknownName(f"{cls.name} has no general instance: add one to GENERAL in {__name__}")


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
    free = [c for c in clauses if not isinstance(c, Permutes)]  # every length has a permutation
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
    """The instance with what is unknown about indices chosen: a rotation for a permutation."""
    if isinstance(primitive, Reorder) and primitive.index == permutation:
        i, length = var("i"), next(params[0].type.lengths())
        return Reorder((i + 1) % length, (i + length - 1) % length), params
    return primitive, params


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
        if (primitive.name, str(clause)) in BY_DEFINITION:
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
        returned = denote(call(inverse, *results), env, proof.reader)
        original = tuple(env[p] for p in params)
        proof.agree(returned, original if len(params) > 1 else original[0], (), BACK)


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
