"""The exceptions of liftpy.

    LiftError                    an error of the user: exit code 1
      SyntaxRefused              a text that is not a program, with a caret
      TypeRefused                an expression whose types or sizes do not fit
        NoSuchAttribute          an attribute that an expression does not have, such as `xs.shape`
      RuleRefused                a rule that is not proved, or does not apply where it was requested
      ConstraintRefused          an assignment that violates conditions, or a space without points
      UnknownName                an unknown workload, primitive, rule, device or candidate
      ArgumentRefused            an array of the wrong shape or type
      DeviceRefused              no OpenCL device, or one that cannot run the program
        KernelRefused            a built kernel cannot be launched; has the driver's limit
        ClockRefused             the device's clock reported impossible times
      BuildFailed                the driver refused the kernel; has its source and the log
      WorkerRefused              a process that measures or compiles cannot be started
      ClusterRefused             a dask cluster that is unreachable or has no suitable worker
      StoreRefused               a database of another program, version or device
      BoardRefused               a board that cannot be reached, or cannot run kernels
      ResultsRefused             output of a board that is incomplete or of another bundle
      NetworkRefused             an ONNX model that is invalid, or has operators without a program
      TransformRefused           points, sizes or matrices that do not make a Winograd transform
      Unsatisfiable              conditions that no choice satisfies; `explore` exits with 3
      MemoryRefused              arrays that do not fit in this machine's memory
      TimeUp                     a time limit ended during a phase
    NothingMeasured              a campaign without a valid measurement: exit code 3
    InternalError                a defect of liftpy: exit code 70
      StrayWrite                 a kernel wrote outside a buffer, or into a read-only one

A message states what was refused, where, why (with the values), and what would satisfy it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


class LiftError(Exception):
    """An error of the user's program, text, choice or machine.

    >>> import liftpy as lp
    >>> try:
    ...     lp.parse("def p(xs: [4]f32) = xs |> split(3)")
    ... except lp.LiftError as error:
    ...     print(str(error).partition(chr(10))[0])
    split(3) cannot be applied to [4]f32
    """

    exit_code = 1
    #: Whether the message has a place in a Python function.
    located = False


class SyntaxRefused(LiftError):
    """The text is not a program; the message has the line and a caret."""


class TypeRefused(LiftError):
    """Types or sizes do not fit."""

    #: The call that was refused, if the message does not have its place yet.
    part: object = None


class NoSuchAttribute(TypeRefused, AttributeError):
    """An expression does not have this attribute, such as `xs.shape`; `hasattr` returns False."""


class RuleRefused(LiftError):
    """A rule is not proved, or a strategy could not apply it where it was requested."""


class ConstraintRefused(LiftError):
    """An assignment violates conditions, or a space has no points."""


class UnknownName(LiftError):
    """A name does not exist; the message lists names that do."""


class ArgumentRefused(LiftError):
    """An array does not have the shape or the type of its parameter."""


class DeviceRefused(LiftError):
    """There is no OpenCL device, or not the requested one; the message states what to install."""


class ClusterRefused(LiftError):
    """A dask scheduler is unreachable or has no worker that can measure.

    The message states what to start.
    """


class BoardRefused(LiftError):
    """A board cannot be reached, or cannot run kernels; the message states what to do."""


class KernelRefused(DeviceRefused):
    """A driver's limit for a built kernel is below the device's general limit.

    `kernel` is the kernel's name and `figure` the limit that is exceeded: "group" or "local".
    `number` is the driver's figure: the largest work-group in work-items, or the local memory that
    the kernel needs in bytes.
    """

    def __init__(self, message: str, kernel: str, figure: str, number: int) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.figure = figure
        self.number = number


class ClockRefused(DeviceRefused):
    """The device's clock reported impossible times."""


class BuildFailed(LiftError):
    """The driver refused a kernel. `source` is its text with line numbers, `log` the build log."""

    def __init__(self, message: str, source: str, log: str) -> None:
        super().__init__(f"{message}\n{log}")
        self.source = source
        self.log = log


class WorkerRefused(LiftError):
    """A worker process cannot start: its device is gone, or it dies at startup."""


class StoreRefused(LiftError):
    """A campaign database cannot be used for this command."""


class ResultsRefused(LiftError):
    """The output of a board cannot be imported; the message has the line."""


class NetworkRefused(LiftError):
    """A model is not valid, or has nodes that cannot be expressed; the message names each node.

    `unsupported` are these nodes (`liftpy.networks.graph.Unsupported`).
    """

    def __init__(self, message: str, unsupported: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.unsupported = tuple(unsupported)


class TransformRefused(LiftError):
    """Points, sizes or matrices do not make a Winograd transform of acceptable error."""


class Unsatisfiable(TypeRefused, ConstraintRefused):
    """No choice satisfies the conditions: sizes that violate one, or a space without points.

    A campaign then has nothing to measure, and `explore` exits with 3; other commands exit with 1.
    """


def unsatisfiable(error: BaseException) -> bool:
    """Whether an error is `Unsatisfiable`, or was raised from one."""
    cause = error.__cause__
    return isinstance(error, Unsatisfiable) or (cause is not None and unsatisfiable(cause))


class MemoryRefused(LiftError):
    """Arrays are larger than the free memory; the message has their size."""


class TimeUp(LiftError):
    """A time limit ended; the message names the phase that it interrupted."""


class NothingMeasured(LiftError):
    """A campaign ended without a valid measurement."""

    exit_code = 3


class InternalError(Exception):
    """A defect of liftpy itself: please report it with the program that caused it."""

    exit_code = 70

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}\n(this is a defect of liftpy: "
            "please report it with the program and command that led here)"
        )


class StrayWrite(InternalError):
    """A kernel wrote outside the memory that it may write, at byte `offset` of `buffer`."""

    def __init__(self, message: str, buffer: str, offset: int) -> None:
        super().__init__(message)
        self.buffer = buffer
        self.offset = offset


def plural(number: int, noun: str) -> str:
    """A count for a message: "1 argument", "2 arguments"."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def a_few(names: Iterable[str], most: int = 4) -> str:
    """Names for a message: the first `most`, and the number of the others."""
    known = list(names)
    more = len(known) - most
    return ", ".join(known[:most]) + (f" and {more} more" if more > 0 else "")
