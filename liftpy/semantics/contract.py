"""The contract of primitives, judged on one general instance of each, with symbolic sizes.

C1  the lengths of the meaning are those of `type_of`, at every depth, and not negative
C2  every element that the meaning reads is inside its array; of a clipped read, only the indices
    that clipping does not change are checked, and the array must not be empty
C3  `reference` agrees with the meaning on distinct elements, at many sizes (tested, not proved)
C4  `inverse` after the primitive returns every element to its position, and so does the primitive
    after `inverse`: writing through an inverse fills its destination; a constant that an inverse
    inserts is not a position, and a value that would be written there is discarded
C5  `requires` can hold for more than 8 elements; each clause is needed by C1, C2 or C4, or is part
    of the primitive's definition and has its reason in the class (`by_definition`)
C6  a layout has an adjoint, which leads every element back to where it was read, or an equal
    expression of such layouts (`liftpy.semantics.adjoint`)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import z3

from liftpy.errors import UnknownName
from liftpy.ir.call import FunCall, call
from liftpy.ir.constraint import Constraint, Everywhere
from liftpy.ir.denote import denote
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import INDEX, Applied, var
from liftpy.ir.polynomial import Atom
from liftpy.ir.primitive import Layout, Primitive, index_fields
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.primitives import PRIMITIVES
from liftpy.semantics.adjoint import keep_adjoint, without_constants, written
from liftpy.semantics.agree import Hypotheses, Proof, started
from liftpy.semantics.general import Instance, general
from liftpy.semantics.reference_check import disagreement, variables
from liftpy.semantics.refute import hold
from liftpy.semantics.smt import STEPS, ask
from liftpy.semantics.symbolic import FoldComponent, components
from liftpy.semantics.verdict import Open, Proved, Refuted, Unknown, Vacuous, Verdict

LENGTHS = "C1 the lengths of the meaning are those of the type, and not negative"
INSIDE = "C2 every element that is read is inside its array"
REFERENCE = "C3 the reference agrees with the meaning at many sizes"
BACK = "C4 the inverse leads every element back"
FORTH = "C4 the primitive leads every element of its inverse back"
POSSIBLE = "C5 what is required can hold for more than 8 elements"
NEEDED = "C5 each clause of what is required is needed"

#: The size at which index functions are chosen: neither 1 nor a multiple of 3.
TRIED = 5


def prove_primitive(name: str, steps: int = STEPS) -> Verdict:
    """Whether a primitive keeps its contract. `steps` limits each solver in each query."""
    if name not in PRIMITIVES:
        raise UnknownName(
            f"no primitive is named {name}; known primitives: {', '.join(PRIMITIVES)}"
        )
    return prove_instance(*general(PRIMITIVES[name]), steps)


def prove_instance(primitive: Primitive, params: tuple[Param, ...], steps: int = STEPS) -> Verdict:
    """Whether a primitive keeps its contract on parameters."""
    clauses = tuple(primitive.requires(*(p.type for p in params)))
    proof = started(params, clauses, steps)
    free = [c for c in clauses if not isinstance(c, Everywhere)]  # some index function does
    possible = started(params, tuple(free), steps)
    answer = ask([*possible.terms.facts, *possible.hypotheses, *possible.preferred], steps)
    if answer.status == "unsat":
        return Vacuous(f"{POSSIBLE}: {', '.join(map(str, clauses))}")
    if answer.status == "unknown":
        return Unknown(POSSIBLE, f"z3 gave up: {answer.reason}")
    try:
        keep(proof, primitive, params)
        words = disagreement(*(instance_to_try(primitive, params)))
        if words is not None:
            return Refuted(REFERENCE, words)
        if isinstance(primitive, Layout):
            proof.shown += keep_adjoint(primitive, params, steps)
    except Open as left:
        if left.sizes is None:
            return Unknown(left.obligation, left.reason)
        return Refuted(left.obligation, witness(left.sizes))
    idle = next(needless(primitive, params, clauses, steps), None)
    if idle is not None:
        return Refuted(NEEDED, f"C1, C2 and C4 hold without {idle}")
    return Proved((*proof.shown, REFERENCE, POSSIBLE, NEEDED))


def instance_to_try(primitive: Primitive, params: tuple[Param, ...]) -> Instance:
    """The instance, with known index functions that its conditions allow for unknown ones."""
    types = tuple(p.type for p in params)
    length = next((n for t in types for n in t.lengths()), None)
    if length is None or not any(isinstance(a, Applied) for a in unknown_indices(primitive)):
        return primitive, params
    i, names = var(INDEX), index_fields(type(primitive))
    chosen = (3 * i + 1) % length, (i + 1) % length, (i + length - 1) % length
    for functions in itertools.product(chosen, repeat=len(names)):
        made = replace(primitive, **dict(zip(names, functions, strict=True)))
        clauses = list(made.requires(*types))
        if hold(clauses, {v.name: TRIED for v in variables(made, params, clauses)}):
            return made, params
    message = f"{primitive.name} allows none of the index functions that are tried: add some here"
    raise UnknownName(message)


def unknown_indices(primitive: Primitive) -> Iterator[Atom]:
    """The atoms of the index functions of a primitive."""
    for name in index_fields(type(primitive)):
        yield from getattr(primitive, name).atoms()


def witness(sizes: dict[str, int]) -> str:
    """Sizes as text, without z3's fresh constants; the prover's indices are named by number."""
    return ", ".join(
        f"{name.rstrip('#')} = {sizes[name]}" for name in sorted(sizes) if "!" not in name
    )


def needless(
    primitive: Primitive,
    params: tuple[Param, ...],
    clauses: tuple[Constraint, ...],
    steps: int,
) -> Iterator[Constraint]:
    """Yield the clauses without which C1, C2 and C4 still hold, except those in `by_definition`."""
    for position, clause in enumerate(clauses):
        if str(clause) in primitive.by_definition:
            continue
        rest = (*clauses[:position], *clauses[position + 1 :])
        try:
            keep(started(params, rest, steps), primitive, params)
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
        returned = denote(call(without_constants(inverse), *results), env, proof.reader)
        proof.agree(written(proof, returned, original), original, (), BACK)
        fill(proof, primitive, inverse, results)


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
        case _, FoldComponent():
            step, in_range = proof.index(value.fold.length)
            state = proof.reader.state(value.fold.init)
            visit(proof, value.fold.init, t, hypotheses)
            visit(proof, value.fold.step(step, state), t, (*hypotheses, in_range))
        case _, Pull() | tuple() | Parts():
            raise Open(LENGTHS, f"the type is {t}, the meaning is a {type(value).__name__}")
        case _:
            visit_reads(proof, hypotheses)


def visit_reads(proof: Proof, hypotheses: Hypotheses) -> None:
    """Show C2 for the elements read since the last call."""
    terms, reads = proof.terms, proof.reader.reads
    proof.reader.reads = []
    for read in reads:
        index, length = terms.nat(read.index), terms.nat(read.length)
        within = z3.And(index >= 0, index < length)
        if read.index in proof.reader.clipped:
            below = terms.nat(proof.reader.clipped[read.index])
            within = z3.And(length >= 1, z3.Implies(z3.And(index >= 0, index < below), within))
        proof.show(INSIDE, within, hypotheses)
