"""`lp.torch_function`: a program as a function of PyTorch tensors that PyTorch differentiates.

PyTorch is imported on first use: it is an extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from liftpy.compile import Kernel, compile_to_kernel
from liftpy.constraints.device import Device
from liftpy.errors import ArgumentRefused
from liftpy.explore.optional import needing
from liftpy.gradient.program import gradient, variables
from liftpy.ir.expr import Param
from liftpy.ir.program import Program
from liftpy.ir.types import FLOATS, ArrayType, TupleType, Type, scalars
from liftpy.language.entry import entry
from liftpy.pytorch.tensors import as_array

Settings: TypeAlias = Mapping[str, int | str]
"""The choices and sizes of a candidate."""


class TorchFunction:
    """A program as a function of tensors; its gradient is computed by kernels, too.

    The gradient is a program, for which there is a function of this class again, so there are
    derivatives of every order. Kernels are compiled at the first call that needs them.
    """

    def __init__(
        self,
        program: Program,
        wrt: Sequence[Param],
        device: Device | str | None,
        settings: Sequence[Settings | None],
    ) -> None:
        self.program = program
        self.wrt = tuple(wrt)
        self._device = device
        self._settings = settings
        self._torch: Any = needing("torch", "torch", "torch", "a function of PyTorch tensors")
        self._applied = applied(self, self._torch)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.wrt)
        return f"<TorchFunction of {self.program.name} with the gradient of {names}>"

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel of the program; compiled at the first use."""
        own = self._settings[0] if self._settings else None
        return compile_to_kernel(self.program, own, device=self._device)

    @cached_property
    def gradient(self) -> TorchFunction:
        """The function of the gradient: its program is `lp.gradient(program, wrt)`."""
        made = gradient(self.program, [p.name for p in self.wrt])
        seeds = made.params[len(self.program.params) :]
        named = {p.name: p for p in made.params}
        wrt = [*(named[p.name] for p in self.wrt), *seeds]
        return TorchFunction(made, wrt, self._device, self._settings[1:])

    @entry("torch function")
    def __call__(self, *tensors: Any) -> Any:
        """The value of the program, as tensors on the device of the first tensor that is given.

        Numbers and NumPy arrays are accepted as well. ArgumentRefused if an argument does not fit
        its parameter, or if it requires a gradient that this function does not have.
        """
        leaves = [*flat(tensors)]
        differentiated = {p.name for p in self.wrt}
        for p, given in zip(self.program.params, tensors, strict=False):
            if p.name not in differentiated and self._torch.is_grad_enabled():
                self._check_constant(p, given)
        results = self._applied.apply(tensors, *leaves)
        return next(regrouped((grouping(self.program.type),), iter(results)))

    def _check_constant(self, param: Param, given: Any) -> None:
        """Raises ArgumentRefused if a tensor for a parameter outside `wrt` requires a gradient."""
        if any(getattr(leaf, "requires_grad", False) for leaf in flat((given,))):
            what = f"`{param.name}` of {self.program.name} needs a gradient"
            names = ", ".join(p.name for p in self.wrt)
            why = f"this function has gradients with respect to {names} only"
            instead = f'pass it with `.detach()`, or name "{param.name}" in `wrt`'
            raise ArgumentRefused(f"{what}\n  {why}\n  {instead}")


@entry("lp.torch_function")
def torch_function(
    program: Program,
    wrt: Sequence[str] | str | None = None,
    device: Device | str | None = None,
    *,
    settings: Sequence[Mapping[str, int | str] | None] = (),
) -> TorchFunction:
    """A program as a function of PyTorch tensors, differentiated by `lp.gradient`.

    wrt: the names of the parameters that it is differentiated with respect to; by default, all
        floating-point numbers and arrays of these.
    device: the OpenCL device of the kernels. Arguments are copied to it, and results back.
    settings: the choices and sizes of the kernel of the program, then those of the kernel of
        `lp.gradient(program, wrt)`, as for `lp.compile`: `campaign.best().assignment`. Without
        them, or with None, the kernel is correct and slow.

    The function takes a tensor of the shape and type of each parameter, or a tuple of tensors for a
    parameter with tuples, and returns a tensor, or a tuple of tensors. The gradient is derived at
    once: TypeRefused if there is none. LiftError if PyTorch is not installed
    (`pip install 'liftpy[torch]'`).

        squares = lp.torch_function(lp.parse("def f(xs: [3]f32) = xs |> map(x => x * x)"))
        xs = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        squares(xs).sum().backward()  # xs.grad is tensor([2., 4., 6.])
    """
    made = TorchFunction(program, variables(program, wrt), device, settings)
    _ = made.gradient  # derived now: what has no gradient is refused here, not in a backward pass
    return made


def applied(own: TorchFunction, torch: Any) -> Any:
    """The `torch.autograd.Function` of a program, from a flat row of tensors to one of results."""
    program = own.program
    floating = [t in FLOATS for t in scalars(program.type)]
    number = program.type in FLOATS  # its gradient has no cotangent: `backward` multiplies by it

    class Applied(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, grouped: tuple[Any, ...], *leaves: Any) -> tuple[Any, ...]:
            given = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            ctx.save_for_backward(*given)
            # copies: what the caller writes into an array later must not change the gradient
            ctx.own = [None if isinstance(x, torch.Tensor) else copied(x) for x in leaves]
            ctx.shape = shape(grouped)
            arrays = tuple(regrouped(ctx.shape, iter([as_array(leaf, torch) for leaf in leaves])))
            device = given[0].device if given else None
            values = flat((own.kernel(*arrays),))
            results = tuple(torch.from_numpy(np.asarray(v)).to(device) for v in values)
            steps = zip(results, floating, strict=True)
            ctx.mark_non_differentiable(*(r for r, differentiable in steps if not differentiable))
            return results

        @staticmethod
        def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
            saved = iter(ctx.saved_tensors)
            leaves = [next(saved) if leaf is None else leaf for leaf in ctx.own]
            given = [*regrouped(ctx.shape, iter(leaves))]
            seeds = [ct for ct, differentiable in zip(cts, floating, strict=True) if differentiable]
            found = flat((own.gradient(*given, *([] if number else seeds)),))
            gradients = {p.name: [next(found) for _ in scalars(p.type)] for p in own.wrt}
            if number:
                gradients = {name: [g * seeds[0] for g in gs] for name, gs in gradients.items()}
            parts = [gradients.get(p.name, [None] * len(scalars(p.type))) for p in program.params]
            every = (None, *(g for part in parts for g in part))
            return tuple(g if ctx.needs_input_grad[k] else None for k, g in enumerate(every))

    Applied.__name__ = Applied.__qualname__ = program.name
    return Applied


# --- tuples of tensors ----------------------------------------------------------------------------


def flat(values: tuple[Any, ...]) -> Iterator[Any]:
    """The tensors of nested tuples, in order."""
    for value in values:
        if isinstance(value, tuple):
            yield from flat(value)
        else:
            yield value


def shape(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The structure of nested tuples, with None in place of each value."""
    return tuple(shape(v) if isinstance(v, tuple) else None for v in values)


def grouping(t: Type) -> Any:
    """The structure of tuples in which values of a type are passed, with None for each value."""
    match t:
        case ArrayType(element):
            return grouping(element)
        case TupleType(elements):
            return tuple(map(grouping, elements))
        case _:
            return None


def regrouped(grouped: tuple[Any, ...], leaves: Iterator[Any]) -> Iterator[Any]:
    """A flat row of values as nested tuples of a structure."""
    for part in grouped:
        yield next(leaves) if part is None else tuple(regrouped(part, leaves))


def copied(leaf: Any) -> Any:
    """An array of its own; numbers are returned as they are."""
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf
