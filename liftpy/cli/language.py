"""derive, and the stages of `show` that need the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.table import Table

from liftpy.cli.arguments import load_program
from liftpy.cli.options import (
    ChoiceOption,
    JsonFlag,
    LimitsName,
    ProgramName,
    SizeOption,
    StorageOption,
    WhereOption,
    one_of,
    settings,
)
from liftpy.cli.screen import say, show_json
from liftpy.cli.screen import show as show_table
from liftpy.cli.spaces import device_or_default, note_unbound
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import ConstraintRefused, UnknownName
from liftpy.explore.space.member import Member
from liftpy.explore.space.precision import other_meaning
from liftpy.explore.space.settings import Settings
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.ir.expr import Expr
from liftpy.ir.open_sizes import size_ranges
from liftpy.ir.program import Program
from liftpy.kernels.chain import Kernel
from liftpy.language.text.program import show as program_text
from liftpy.language.text.program import show_expr
from liftpy.loops.bounds import bounds as bounds_of
from liftpy.loops.bounds import guards
from liftpy.loops.lower import LoopKernel
from liftpy.loops.passes import after_each_pass, in_loop_ir, nests
from liftpy.loops.show import show_kernel
from liftpy.loops.tree import (
    Simple,
    accesses_of,
    statements_in,
)
from liftpy.loops.values import (
    Cell,
)
from liftpy.loops.writers import shared_stores
from liftpy.opencl.devices import find_device
from liftpy.opencl.generate import buffer_names
from liftpy.opencl.kernel import Module
from liftpy.pipeline import ON_NESTS, PASSES, Compilation, compile_program
from liftpy.rewrite.composition import examples
from liftpy.rewrite.skeleton import FAMILY, Skeleton
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.rewrite.strategy import replay, step_json, step_text
from liftpy.semantics.obligations import obligations
from liftpy.semantics.sizes import closed

EXPRESSION_WIDTH = 100


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("derive")(derive)


# --- show: the stages that need the compiler ------------------------------------------------------


def show_stage(
    source: Program,
    stage: str,
    given: Settings,
    device: str | None,
    bounds: Mapping[str, Any],
    tell: Callable[[dict[str, Any], Iterable[str]], None],
    *,
    json: bool,
) -> None:
    """Shows a later stage of a program, for the candidate with the given settings.

    `bounds` restrict its space, as arguments of `space_of`. `tell` prints JSON data, or lines.
    """

    def tell_text(data: dict[str, Any], text: str) -> None:
        tell({**data, "text": text}, [text.rstrip()])

    conditions = [*map(str, obligations(source))] if stage == "constraints" else []
    if stage == "constraints" and size_ranges(source):
        tell({"obligations": conditions, "skeletons": []}, conditions)
        return
    space = space_of(source, device_or_default(device), settings=given, **bounds)
    if stage == "constraints":
        choices = {name: value for name, value in given.items() if name in space.choices}
        chosen = space.choosing(choices)
        tell(
            {
                "obligations": conditions,
                "skeletons": [constraints_json(m) for m in chosen.every],
            },
            (*conditions, *constraint_lines(chosen)),
        )
        return
    candidate = space.candidate(given)
    lowered = candidate.skeleton.at(candidate.point)
    which = {"candidate": candidate.key, "assignment": candidate.assignment}
    if not json:
        say(f"# {candidate.label}")
    if stage == "lowered":
        tell_text(which, program_text(lowered))
        return
    compilation = compile_program(lowered)
    match stage:
        case "memory" if json:
            module = compilation.module
            buffers = [asdict(buffer) for buffer in module.buffers]
            tell({**which, "buffers": buffers, "memory": asdict(module.memory)}, ())
        case "memory":
            show_memory(compilation.module)
        case "views":
            views = [*kernel_views(compilation)]
            tell({**which, "kernels": [asdict(view) for view in views]}, map(str, views))
        case "loops":
            names = buffer_names(compilation.chain)
            kernels = [loop_stages(kernel, names) for kernel in compilation.chain.kernels]
            lines = (line for stages in kernels for line in stage_lines(stages))
            tell({**which, "kernels": kernels}, lines)
        case "bounds":
            proved = [*map(kernel_bounds, compilation.optimized)]
            tell({**which, "kernels": proved}, (line for k in proved for line in bound_lines(k)))
        case _:
            tell_text(which, compilation.module.source)


def loop_stages(kernel: Kernel, names: dict[str, str]) -> dict[str, str]:
    """A kernel in the loop IR: as lowered, and after each pass that changes it."""
    stages, last = dict[str, str](), ""
    before = in_loop_ir(kernel, names, ON_NESTS)
    every = (*nests(kernel, names, ON_NESTS), *after_each_pass(before, PASSES))
    for name, code in every:
        text = show_kernel(code)
        if text != last:
            stages[name] = last = text
    return stages


def stage_lines(stages: dict[str, str]) -> Iterator[str]:
    """Yields the stages of a kernel, each below the name of its pass."""
    for name, text in stages.items():
        yield f"# {name}"
        yield text


def kernel_bounds(code: LoopKernel) -> dict[str, Any]:
    """The proofs about a kernel.

    Accesses are in bounds, guards that were left out are not needed, and no element has two
    writers.
    """
    accesses = dict.fromkeys(map(str, bounds_of(code)))
    return {
        "kernel": code.name,
        "accesses": [*accesses],
        "guards": [*dict.fromkeys(map(str, guards(code)))],
        "shared": [*map(str, shared_stores(code))],
    }


def bound_lines(proved: dict[str, Any]) -> Iterator[str]:
    """Yields the proofs about a kernel as lines."""
    yield f"{proved['kernel']}:"
    for line in (*proved["accesses"], *proved["guards"]):
        yield f"  {line}"
    if not proved["shared"]:
        yield "  no element of a buffer is stored by two work-items"
    for line in proved["shared"]:
        yield f"  {line}"


def constraints_json(member: Member) -> dict[str, Any]:
    """The sizes of a skeleton and the conditions on them, as JSON data."""
    return {
        "skeleton": member.key,
        "parameters": [asdict(p) for p in member.system.parameters],
        "constraints": [
            {"text": str(clause.constraint), "asked_by": clause.asked_by}
            for clause in member.system.clauses
        ],
    }


def constraint_lines(space: Space) -> Iterator[str]:
    """Yields the sizes and conditions of each skeleton, with the sources of the conditions."""
    for member in space.every:
        yield f"{member.key}:"
        for p in member.system.parameters:
            yield f"  {p.low} <= {p.name} <= {p.high}: {p.meaning}"
        for clause in member.system.clauses:
            yield f"  {clause.constraint}    required by {clause.asked_by}"


def show_memory(module: Module) -> None:
    """Prints the buffers with their slots, and the memory figures."""
    table = Table(box=None, pad_edge=False)
    for name in ("buffer", "role", "type", "slot"):
        table.add_column(name, no_wrap=True)
    table.add_column("bytes", justify="right")
    for b in module.buffers:
        shape = "".join(f"\\[{n}]" for n in b.shape)
        table.add_row(b.name, b.role, f"{shape}{b.scalar}", b.slot, f"{b.bytes:,}")
    show_table(table)
    m = module.memory
    say(
        f"peak {m.peak:,}  allocated {m.allocated:,}  scratch {m.scratch:,}  local {m.local:,}  "
        f"private {m.private:,}  prepare {m.prepare:,} bytes"
    )


@dataclass(frozen=True)
class KernelView:
    """The accesses of a kernel, one per line: load or store, memory, index."""

    kernel: str
    phase: str
    global_size: list[int]
    accesses: list[str]

    def __str__(self) -> str:
        head = f"{self.kernel} ({self.phase}), global {self.global_size}:"
        return "\n".join([head, *(f"  {access}" for access in self.accesses)])


def kernel_views(compilation: Compilation) -> Iterator[KernelView]:
    """Yields the distinct accesses of each kernel."""
    for code in compilation.loops:
        simple = (s for s in statements_in(code.block) if isinstance(s, Simple))
        accesses = dict.fromkeys(
            access_line(cell, store=store) for s in simple for cell, store in accesses_of(s)
        )
        kernel = code.kernel
        yield KernelView(kernel.name, kernel.phase, list(code.global_size), list(accesses))


def access_line(cell: Cell, *, store: bool) -> str:
    """An access as text: load or store, number of lanes, memory, index."""
    lanes = f" x{cell.width}" if cell.width > 1 else ""
    what = f"{'store' if store else 'load '}{lanes}"
    return f"{what} {cell.memory.space} {cell.memory.name}[{cell.index}]"


# --- derive ---------------------------------------------------------------------------------------


def derive(  # noqa: PLR0913  one parameter per option
    program: ProgramName,
    *,
    size: SizeOption = None,
    storage: StorageOption = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            metavar="FAMILY",
            parser=one_of(FAMILIES, "family"),
            help="A family of strategies; by default all.",
        ),
    ] = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="Print the expression after each step.")
    ] = False,
    set_: ChoiceOption = None,
    where: WhereOption = None,
    device: LimitsName = None,
    json: JsonFlag = False,
) -> None:
    """A derivation of each family: the rules applied, where, and the result.

    --set selects another derivation of a family, as in `--set pad=copy`; --json lists all.
    A derivation does not depend on a device or on sizes; --device and --where select the
    derivations that have a candidate.
    """
    given = settings(set_)
    if strategy is not None:
        given[FAMILY] = strategy
    source = closed(load_program(program, size, storage))
    found = fitting(source, given)
    if device is not None or where:
        target = DEFAULT_DEVICE if device is None else find_device(device)
        space = Space.of(source, target, found, where=where or ())
        note_unbound(space)
        found = [member.skeleton for member in space.members if member.points.count()]
        if not found:
            raise ConstraintRefused(space.why_empty())
    if json:
        show_json([skeleton_json(s, steps=steps) for s in found])
        return
    for family in dict.fromkeys(s.family for s in found):
        skeleton, *others = mine = [s for s in found if s.family == family]
        derivation = skeleton.derivation
        say(f"{skeleton.key}: {len(derivation.steps)} steps")
        if (changed := other_meaning(skeleton)) is not None:
            say(f"  {changed}")
        if steps:
            say(f"  {indented(derivation.start)}")
        followed = replay(derivation.start, derivation.steps)
        for number, (step, after) in enumerate(followed, 1):
            say(f"{number:4}  {step_text(step)}")
            if steps:
                say(f"  {indented(after)}")
        if not steps:
            say(f"  {indented(derivation.result)}")
        if others:
            words = [(name, {s.words.get(name) for s in mine}) for name in skeleton.words]
            names = [name for name, known in words if len(known) > 1]
            say(f"{family}: {len(others)} more, by {', '.join(names)} (--set {names[0]}=...)")


def fitting(program: Program, given: Settings) -> list[Skeleton]:
    """The skeletons with the given structural choices; UnknownName if there are none."""
    named = (str(word) for name, word in given.items() if name.rpartition(".")[2] == FAMILY)
    made = [*examples(program, named)]
    words = [s.words for s in made]
    found = [
        s
        for s, mine in zip(made, words, strict=True)
        if all(mine.get(name) == str(value) for name, value in given.items())
    ]
    if not found:
        asked = ", ".join(f"{name}={value}" for name, value in given.items())
        known: dict[str, dict[str, None]] = {}
        for mine in words:
            for name, word in mine.items():
                known.setdefault(name, {})[word] = None
        listed = "; ".join(f"{name}: {', '.join(some)}" for name, some in known.items())
        raise UnknownName(f"no derivation of {program.name} has {asked}; available: {listed}")
    return found


def skeleton_json(skeleton: Skeleton, *, steps: bool) -> dict[str, Any]:
    """A derivation as JSON data; `steps` adds the expression after each step."""
    derivation = skeleton.derivation
    followed = replay(derivation.start, derivation.steps) if steps else ()
    after = [{"after": show_expr(expr)} for _, expr in followed]
    listed = [step_json(step) for step in derivation.steps]
    return {
        "skeleton": skeleton.key,
        "family": skeleton.family,
        "choices": {n: word for n, word in skeleton.words.items() if n != FAMILY},
        "other_meaning": other_meaning(skeleton),
        "steps": [a | b for a, b in zip(listed, after, strict=True)] if steps else listed,
        "result": show_expr(derivation.result),
    }


def indented(expr: Expr) -> str:
    """An expression in lines, indented."""
    return show_expr(expr, EXPRESSION_WIDTH).replace("\n", "\n  ")
