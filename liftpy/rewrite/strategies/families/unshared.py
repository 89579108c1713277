"""`unshared`: register blocks of folds that share no operand, such as those of windows."""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.program import Program
from liftpy.ir.walk import at, every_part
from liftpy.rewrite.strategies.axes import folds_nested, maps_around
from liftpy.rewrite.strategies.block import BLOCK, blockable, group_maps
from liftpy.rewrite.strategies.families import direct
from liftpy.rewrite.strategies.families.common import outer_length, stored_views, with_epilogues
from liftpy.rewrite.strategies.families.direct import Direct, DirectBlock
from liftpy.rewrite.strategies.families.form import Family
from liftpy.rewrite.strategies.planes import reads_no_folds
from liftpy.rewrite.strategies.shapes import (
    body_of,
    is_folded,
    is_in_registers,
    is_reduce,
    nests,
    outer_reductions,
    paths_of,
)
from liftpy.rewrite.strategy import Failure, at_path


def match(program: Program) -> Direct | str:
    """The map of a map of folds that makes the result, if `direct` does not apply.

    A block has sigma neighbours along the outer map, such as the windows of a row, and kappa along
    the inner one, such as channels, in vectors.
    """
    if not isinstance(direct.match(program), str):
        return "`direct` applies: its folds share an operand"
    nested = folds_nested()
    result = nested(with_epilogues(program.body.body))
    body = program.body.body if isinstance(result, Failure) else result.expr
    path = next(iter(blockable(body)), None)
    if path is None or path not in paths_of(nests(body)):
        return "no map of maps of folds makes the result"
    if isinstance(at_path(path, group_maps(is_folded, *BLOCK))(body), Failure):
        return "its maps cannot be cut into blocks"
    block = at(body, path)
    reductions = outer_reductions(body_of(body_of(block)))
    alone = all(reads_no_folds(at(body_of(body_of(block)), r)) for r in reductions)
    maps = [*(at(body, place) for place in maps_around(body, path) or ()), block, body_of(block)]
    sources = [a for e in maps if isinstance(e, FunCall) for a in e.args]
    if not alone or any(is_reduce(part) for source in sources for part in every_part(source)):
        return "its folds read other folds"
    if any(map(is_in_registers, sources)):
        return "its folds read an array that is made in registers"
    lengths = outer_length(body_of(block)), outer_length(block)
    pads = stored_views(body)
    return Direct(
        program, (DirectBlock((), nested, *lengths, None, pads, nested=False, integers=0),)
    )


UNSHARED = Family(
    "unshared", "register blocks of folds that share no operand", match, if_named=True
)
