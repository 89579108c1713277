"""Building a rule's right side from the bindings that matching found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall, call, fresh, substitute
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Function, FunVar, Lambda
from liftpy.ir.primitive import Primitive, nat_fields
from liftpy.ir.types import ArrayType, TupleType, Type, TypeVar, VectorType
from liftpy.ir.walk import children, with_function
from liftpy.rewrite.match import Bindings, size_of
from liftpy.rewrite.rule import ValueVar


def instantiate(template: Expr, found: Bindings) -> Expr:
    """The right side with its bindings substituted; TypeRefused if the sizes do not fit."""
    return TemplateBuilder(found).build(template, {})


class TemplateBuilder:
    """Builds templates; new variables get names unused in the substituted expressions."""

    def __init__(self, found: Bindings) -> None:
        self.found = found
        self.avoid = {
            p.name for e in (*found.exprs.values(), *found.functions.values()) for p in e.free
        }

    def build(self, template: Expr, scope: dict[Param, Param]) -> Expr:
        """Build an expression; `scope` maps the template's variables to the new ones."""
        match template:
            case Param():
                return scope[template] if template in scope else self.found.exprs[template.name]
            case Literal(value, t):
                number = self.found.values[value.name] if isinstance(value, ValueVar) else value
                return Literal(number, self.type(t))
            case Tuple(elements):
                return Tuple(tuple(self.build(e, scope) for e in elements))
            case FunCall(FunVar() as f, args):
                return apply_fitted(
                    self.found.functions[f.name], [self.build(a, scope) for a in args]
                )
            case FunCall(Lambda() as f, args):
                new = tuple(self.build(a, scope) for a in args)
                return call(self.function(f, tuple(a.type for a in new), scope), *new)
            case FunCall(Primitive() as p, args):
                new = tuple(self.build(a, scope) for a in args)
                return call(self.primitive(p, tuple(a.type for a in new), scope), *new)
            case _:
                message = f"a rule cannot have {template} on its right"
                raise TypeRefused(message)

    def primitive(
        self, p: Primitive, args: tuple[Type, ...], scope: dict[Param, Param]
    ) -> Function:
        """A template's primitive with its sizes, values and function substituted."""
        changes: dict[str, Any] = {
            name: size_of(getattr(p, name), self.found) for name in nat_fields(type(p))
        }
        for f in p.__dataclass_fields__:
            value = getattr(p, f)
            if isinstance(value, ValueVar):
                changes[f] = self.found.values[value.name]
        if p.function is None:
            return replace(p, **changes) if changes else p
        new = self.function(p.function, p.parameter_types(*args), scope)
        return with_function(replace(p, **changes) if changes else p, new)

    def function(self, f: Lambda, types: tuple[Type, ...], scope: dict[Param, Param]) -> Lambda:
        """A template's function with parameters of these types."""
        names = [self.name(q, f.body) for q in f.params]
        taken = set(self.avoid)
        params: list[Param] = []
        for name, t in zip(names, types, strict=True):
            params.append(Param(fresh(name, taken), t))
            taken.add(params[-1].name)
        outer = self.avoid
        self.avoid = taken
        inner = {**scope, **dict(zip(f.params, params, strict=True))}
        body = self.build(f.body, inner)
        self.avoid = outer
        return Lambda(tuple(params), body)

    def name(self, param: Param, body: Expr) -> str:
        """The name that the user gave to what `param` stands for; else the name of `param`."""
        if isinstance(body, FunCall) and param in body.free:
            if isinstance(body.fun, FunVar):
                for q, a in zip(self.found.functions[body.fun.name].params, body.args, strict=True):
                    if a == param:
                        return q.name
            for child in children(body):
                if (found := self.name(param, child)) != param.name:
                    return found
        return param.name

    def type(self, t: Type) -> Type:
        """A template's type with its bindings substituted."""
        match t:
            case TypeVar(name):
                return self.found.types[name]
            case ArrayType(element, length):
                return ArrayType(self.type(element), length.substitute(self.found.sizes))
            case VectorType(element, width):
                return VectorType(self.type(element), width.substitute(self.found.sizes))
            case TupleType(elements):
                return TupleType(tuple(self.type(e) for e in elements))
            case _:
                return t


def apply_fitted(function: Lambda, args: list[Expr]) -> Expr:
    """The body with arguments substituted; their sizes may be written differently."""
    return substitute(function.body, dict(zip(function.params, args, strict=True)))
