"""A compiling worker that breaks the kernels of chosen candidates: for test_trust.py."""

import json
import os
import re
import sys
from dataclasses import replace

from liftpy.explore.measure.compiling import Compiler
from liftpy.explore.measure.messages import Compile, Compiled
from liftpy.explore.measure.serving import serve
from liftpy.opencl.kernel import Buffer

ROOM = 150 << 20
"""Bytes that a bench may hold beyond those of its first candidate."""

MORE = 2 * ROOM
"""The bytes of a buffer that no bench may hold. Writing them takes little of a time limit."""

HEAD = "restrict output) {"
"""The kernel that writes the result has this at the end of its head."""


FIRST = "get_global_id(0) + get_global_id(1) + get_global_id(2) == 0"
"""Says of a work-item whether it is the first: one that loops keeps one processor busy."""

LOOP = (
    f"if ({FIRST}) for (volatile ulong i = 0; i < 1ul << 60; i++)"
    " *(volatile __global float*)output = 1;"
)
"""Runs for years but terminates: in a loop without end, PoCL reads uninitialized variables."""


def into_last(statement):
    """Puts a statement at the beginning of the last kernel."""
    return lambda m: replace(m, source=m.source.replace(HEAD, f"{HEAD}\n  {statement}"))


def more(module):
    """The last kernel also holds a temporary buffer of `MORE` bytes until it is killed.

    A worker's memory is sampled periodically, so a kernel that ends could be missed.
    """
    module = into_last(LOOP)(module)
    *others, last = module.launches
    buffer = Buffer("more", "temporary", "f32", (MORE // 4,), MORE, "more")
    return replace(
        module,
        source=module.source.replace(HEAD, "restrict output, __global float* more) {"),
        buffers=(*module.buffers, buffer),
        launches=(*others, replace(last, arguments=(*last.arguments, "more"))),
    )


def endless(module, fifo):
    """A source that no compiler finishes: it includes a FIFO that nobody writes to."""
    return replace(module, source=f'#include "{fifo}"\n{module.source}')


DOES = {
    "loops": into_last(LOOP),
    "strays": into_last("output[6 * 7 * 4] = 1;"),
    "dies": into_last("*(volatile __global float*)(output + (1l << 50)) = 1;"),
    "is wrong": lambda m: replace(m, source=re.sub(r"(output\[.*\] =) ", r"\1 1 + ", m.source)),
    "fills": more,
}


class Misbehaving(Compiler):
    """`chosen` has what candidates do, by skeleton and sizes, as `key_of` writes them."""

    def __init__(self, setup, chosen, fifo):
        super().__init__(setup)
        self.chosen = chosen
        self.does = DOES | {"builds": lambda module: endless(module, fifo)}

    def answer(self, request):
        """The right answer, or one that was broken."""
        answer = super().answer(request)
        if not isinstance(request, Compile) or not isinstance(answer, Compiled):
            return answer
        does = self.chosen.get(key_of(request.skeleton, request.sizes), [])
        module = answer.module
        for name in does:
            module = self.does[name](module)
        assert not does or module.source != answer.module.source
        return Compiled(module, answer.sha)


def key_of(skeleton, sizes):
    return json.dumps([skeleton, sizes], sort_keys=True)


def command(candidates, fifo):
    """The command of a worker: `candidates` are pairs of a candidate and its misbehaviour.

    `fifo` is the path at which a FIFO is created, for candidates whose build never ends.
    """
    os.mkfifo(fifo)
    chosen = {key_of(c.skeleton.key, c.point): [does] for c, does in candidates}
    code = f"from tests.explore.misbehaving import main; main({chosen!r}, {str(fifo)!r})"
    return [sys.executable, "-c", code]


def main(chosen, fifo):
    serve(lambda setup, _: Misbehaving(setup, chosen, fifo))
