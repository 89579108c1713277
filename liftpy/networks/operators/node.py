"""What a builder of programs sees of a node, and the registry of builders by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias
from typing import Literal as OneOf

import numpy as np
from numpy.typing import NDArray

from liftpy.ir.expr import Expr, Literal
from liftpy.ir.types import FLOATS, ScalarType, integer_range
from liftpy.semantics.operations import DTYPES

Shape: TypeAlias = tuple[int, ...]

CHANNELS_LAST = (0, 2, 3, 1)
"""The axes of a batch of images [N][C][H][W] in the order [N][H][W][C]."""

RANK = len(CHANNELS_LAST)
"""The number of axes of a batch of images."""


def channels_last(shape: Shape) -> Shape:
    """The shape of a batch of images with channels innermost.

    >>> channels_last((1, 3, 224, 256))
    (1, 224, 256, 3)
    """
    return tuple(shape[k] for k in CHANNELS_LAST)


class Declined(Exception):
    """A node has no program: `reason` says why, `attribute` names what decides it, or is empty.

    `tensor` is the operand whose value the reason is about, if that value is not constant.
    """

    def __init__(self, reason: str, attribute: str = "", tensor: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.attribute = attribute
        self.tensor = tensor


@dataclass(frozen=True)
class Operand:
    """An input of a node: the operator's name for it, its tensor, type, and value if constant.

    `shape` is that of the model's tensor. If `last`, the program reads the tensor with its channels
    innermost.
    """

    name: str
    tensor: str
    type: ScalarType
    shape: Shape
    value: NDArray[Any] | None = None
    last: bool = False

    @property
    def stored_shape(self) -> Shape:
        """The shape of the array that the program reads."""
        return channels_last(self.shape) if self.last else self.shape


def known(operand: Operand | None) -> NDArray[Any] | None:
    """The value of an operand that decides a program, None if it is absent; or Declined."""
    if operand is not None and operand.value is None:
        raise Declined(
            f"`{operand.name}` is `{operand.tensor}`, which is not constant, and the program "
            "depends on its value",
            operand.name,
            operand.tensor,
        )
    return None if operand is None else operand.value


@dataclass(frozen=True)
class Node:
    """A node with its attributes decoded; absent optional inputs are None.

    `version` is that of the operator, the first opset that defined it so. `attributes` has the
    defaults of ONNX's schema; an attribute without a default is absent or None. `results` are the
    types and shapes of the outputs, None for those that the model does not name. Shapes are those
    of the model; with `channels_last`, results of rank 4 are stored with their channels innermost.
    """

    name: str
    operator: str
    version: int
    attributes: Mapping[str, Any]
    operands: Sequence[Operand | None]
    results: Sequence[tuple[ScalarType, Shape] | None]
    channels_last: bool = False

    def attribute(self, name: str) -> Any:
        """An attribute, its default, or None."""
        return self.attributes.get(name)

    def has(self, position: int) -> bool:
        """Whether the node has this input."""
        return position < len(self.operands) and self.operands[position] is not None

    def operand(self, position: int) -> Operand:
        """The input at a position; Declined if it is absent."""
        found = self.operands[position] if position < len(self.operands) else None
        if found is None:
            raise Declined(f"input {position} is missing")
        return found

    def shape(self, position: int = 0) -> Shape:
        """The shape of an input."""
        return self.operand(position).shape

    def type(self, position: int = 0) -> ScalarType:
        """The scalar type of an input."""
        return self.operand(position).type

    @property
    def result_type(self) -> ScalarType:
        """The scalar type of the first output."""
        return self.result(0)[0]

    @property
    def result_shape(self) -> Shape:
        """The shape of the first output."""
        return self.result(0)[1]

    def result(self, position: int) -> tuple[ScalarType, Shape]:
        """The type and shape of an output that the model names."""
        found = self.results[position] if position < len(self.results) else None
        if found is None:
            raise Declined(f"output {position} is missing")
        return found

    def stored(self, shape: Shape) -> Shape:
        """The shape in which a result is stored."""
        return channels_last(shape) if self.channels_last and len(shape) == RANK else shape

    def images(self) -> tuple[Shape, Shape]:
        """The shapes in which the first input and the first result are stored."""
        return self.operand(0).stored_shape, self.stored(self.result_shape)

    def only_first_result(self, why: str) -> None:
        """Declines the node if it has an output besides the first."""
        if any(result is not None for result in self.results[1:]):
            raise Declined(why)

    def constant(self, position: int) -> NDArray[Any] | None:
        """The value of an input that decides the program; None if it is absent.

        Declined if the value is not known before the network runs.
        """
        if not self.has(position):
            return None
        return known(self.operand(position))

    def numbers(self, attribute: str, position: int) -> list[int] | None:
        """Whole numbers that an attribute has, or since later versions an input; None if neither.

        >>> Node("r", "ReduceSum", 11, {"axes": [1]}, (), ()).numbers("axes", 1)
        [1]
        """
        value = self.constant(position)
        if value is None:
            value = self.attribute(attribute)
        return None if value is None else [int(n) for n in np.atleast_1d(np.asarray(value))]

    def axis(self, name: str = "axis", default: int = 0, rank: int | None = None) -> int:
        """An axis, counted from the first one."""
        given = self.attribute(name)
        rank = len(self.shape()) if rank is None else rank
        return (default if given is None else int(given)) % max(1, rank)

    def axes(self, numbers: Sequence[int], rank: int | None = None) -> list[int]:
        """Axes, counted from the first one, in ascending order."""
        rank = len(self.shape()) if rank is None else rank
        return sorted({n % max(1, rank) for n in numbers})

    def float_only(self, position: int = 0) -> None:
        """Declines the node if an input has no floating-point type."""
        if self.type(position) not in FLOATS:
            raise Declined(f"the language computes it with floats only, not with {self.type()}")


Body: TypeAlias = Callable[..., Expr | tuple[Expr, ...]]
"""The program of a node as a function of its data inputs; a tuple if it has several results."""

Builder: TypeAlias = Callable[[Node], Body]

Orders: TypeAlias = OneOf["declared", "any", "last"]
"""The orders of axes for which an operator has programs.

`declared`: only [N][C][H][W]. `last`: also [N][H][W][C], which its builder makes if
`Node.channels_last`. `any`: the program is the same for every order, except that an attribute
`axis` is permuted like the axes of the images.
"""


@dataclass(frozen=True)
class Entry:
    """The builder of an operator.

    `decided_by` are the positions of inputs whose values decide the program: they must be
    constant, and are no parameters of it. An input in `if_constant` is not a parameter either if
    it is constant and the function returns that the program can have its value. `note` says which
    part of the operator has programs, if not all of it has. `orders` says for which orders of axes.
    """

    build: Builder
    decided_by: frozenset[int] = frozenset()
    if_constant: Mapping[int, Callable[[Node], bool]] = field(default_factory=dict)
    note: str = ""
    orders: Orders = "declared"

    def inside(self, node: Node, position: int) -> bool:
        """Whether the program has the value of an input that is constant."""
        test, found = self.if_constant.get(position), node.operands[position]
        return test is not None and found is not None and found.value is not None and test(node)

    def data(self, node: Node) -> list[Operand]:
        """The inputs of a node that are parameters of its program."""
        return [
            o
            for k, o in enumerate(node.operands)
            if o is not None and k not in self.decided_by and not self.inside(node, k)
        ]


REGISTRY: dict[str, Entry] = {}
"""The operators of ONNX that have programs, by name."""


def operator(
    *names: str,
    decided_by: tuple[int, ...] = (),
    if_constant: Mapping[int, Callable[[Node], bool]] | None = None,
    note: str = "",
    orders: Orders = "declared",
) -> Callable[[Builder], Builder]:
    """Registers a builder for operators: `@operator("Reshape", decided_by=(1,))`; see `Entry`."""

    def register(build: Builder) -> Builder:
        entry = Entry(build, frozenset(decided_by), if_constant or {}, note, orders)
        REGISTRY.update(dict.fromkeys(names, entry))
        return build

    return register


def literal(value: Any, t: ScalarType) -> Literal:
    """A number of a scalar type, as it is after rounding to that type."""
    return Literal(DTYPES[t.name](value).item(), t)


def least(t: ScalarType) -> Literal:
    """The number below all others of a type: where a maximum begins."""
    return literal(-np.inf if t in FLOATS else integer_range(t)[0], t)


def greatest(t: ScalarType) -> Literal:
    """The number above all others of a type: where a minimum begins."""
    return literal(np.inf if t in FLOATS else integer_range(t)[1], t)


def decline(reason: str, attribute: str = "") -> NoReturn:
    """Declines the node that is being built."""
    raise Declined(reason, attribute)
