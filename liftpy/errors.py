"""The exceptions of liftpy.

    LiftError                    the user's: exit code 1
      SyntaxRefused              a text that is not a program, with a caret
      TypeRefused                an expression whose types or sizes do not fit
        NoSuchAttribute          an attribute that an expression does not have, such as `xs.shape`
      RuleRefused                a rule that is not proved, or does not apply where it was asked to
      ConstraintRefused          an assignment that breaks conditions, or a space without points
      UnknownName                an unknown workload, primitive, rule, device or candidate
      ArgumentRefused            an array of the wrong shape or type
      DeviceRefused              no OpenCL device, or one that cannot run the program
        KernelRefused            a built kernel cannot be launched; carries its driver's figure
        ClockRefused             its clock gave impossible times
      BuildFailed                the driver refused the kernel; carries source and log
      WorkerRefused              a process that measures or compiles cannot be started
      ClusterRefused             a dask cluster out of reach, or without a worker that fits
      StoreRefused               a database of another program, version or device
      ResultsRefused             what a board printed is not whole, or of something else
      TransformRefused           points, sizes or matrices that make no Winograd transform
      Unsatisfiable              conditions that no choice satisfies; `explore` exits with 3
      MemoryRefused              arrays that this machine cannot hold
      TimeUp                     a time limit ended in the middle of something
    NothingMeasured              a campaign in which nothing valid was measured: exit code 3
    InternalError                ours: exit code 70
      StrayWrite                 a kernel wrote outside of a buffer, or into one it may only read

A message says what was refused, where, why with the values, and what would satisfy it.
"""

from __future__ import annotations

from collections.abc import Iterable


class LiftError(Exception):
    """An error of the user's program, text, choice or machine."""

    exit_code = 1
    #: Whether the message says where in a Python function the refusal is.
    located = False


class SyntaxRefused(LiftError):
    """The text is not a program; the message has the line and a caret."""


class TypeRefused(LiftError):
    """Types or sizes do not fit."""


class NoSuchAttribute(TypeRefused, AttributeError):
    """An attribute that an expression does not have, such as `xs.shape`; `hasattr` is False."""


class RuleRefused(LiftError):
    """A rule is unproved, or a strategy could not apply it where it was asked to."""


class ConstraintRefused(LiftError):
    """An assignment breaks conditions, or a space has no points."""


class UnknownName(LiftError):
    """A name that does not exist; the message lists those that do."""


class ArgumentRefused(LiftError):
    """An array does not have the shape or the type of its parameter."""


class DeviceRefused(LiftError):
    """No OpenCL device, or not this one; the message says what to install."""


class ClusterRefused(LiftError):
    """A dask scheduler cannot be reached, or has no worker that can measure; says what to start."""


class KernelRefused(DeviceRefused):
    """A driver allows a built kernel less than its device allows kernels in general.

    `kernel` is its name, `figure` what is too small ("group" or "local"), and `number` what the
    driver said: the largest work-group in work-items, or the local memory needed in bytes.
    """

    def __init__(self, message: str, kernel: str, figure: str, number: int) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.figure = figure
        self.number = number


class ClockRefused(DeviceRefused):
    """The device's clock gave impossible times."""


class BuildFailed(LiftError):
    """The driver refused the kernel. `source` is the text with line numbers, `log` the driver's."""

    def __init__(self, message: str, source: str, log: str) -> None:
        super().__init__(f"{message}\n{log}")
        self.source = source
        self.log = log


class WorkerRefused(LiftError):
    """A process of a campaign cannot start: its device is gone, or it dies when it starts."""


class StoreRefused(LiftError):
    """A campaign database cannot be used for this command."""


class ResultsRefused(LiftError):
    """The output of a board cannot be imported; the message has the line."""


class TransformRefused(LiftError):
    """Points, sizes or matrices make no Winograd transform, or one whose error is too large."""


class Unsatisfiable(TypeRefused, ConstraintRefused):
    """Conditions that no choice satisfies: sizes that break one, a space without points.

    Other commands exit with 1. A campaign of it has nothing to measure: `explore` exits with 3.
    """


def unsatisfiable(error: BaseException) -> bool:
    """Whether an error says that no choice satisfies the conditions, or is raised from one."""
    cause = error.__cause__
    return isinstance(error, Unsatisfiable) or (cause is not None and unsatisfiable(cause))


class MemoryRefused(LiftError):
    """Arrays are larger than the memory that is free; the message has their size."""


class TimeUp(LiftError):
    """A time limit ended; the message says in the middle of what."""


class NothingMeasured(LiftError):
    """A campaign ended without one valid measurement."""

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
    """A kernel wrote where it must not: at `offset`, in bytes from the beginning of `buffer`."""

    def __init__(self, message: str, buffer: str, offset: int) -> None:
        super().__init__(message)
        self.buffer = buffer
        self.offset = offset


def plural(number: int, noun: str) -> str:
    """A count for a message: "1 argument", "2 arguments"."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def a_few(names: Iterable[str], most: int = 4) -> str:
    """Names for a message: the first ones, and how many more there are."""
    known = list(names)
    more = len(known) - most
    return ", ".join(known[:most]) + (f" and {more} more" if more > 0 else "")
