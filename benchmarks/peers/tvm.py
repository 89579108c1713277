"""TVM: convolutions without groups and products, by the schedule that its own tuner found.

`benchmarks/tune_tvm.py` tunes a case (MetaSchedule) and stores the trace of the fastest schedule; a
case without one is left out, because TVM's code means nothing untuned. The weights of a convolution
are packed before the clock starts, into the layout that the schedule chose.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case

from peers.interface import LeftOut, Made, Peer

RECORDS = Path(__file__).parents[1] / "results" / "tvm"
"""The folder of the stored traces, a file a case."""


class TVM(Peer):
    """Code by LLVM for this processor, on TVM's own threads."""

    name = "TVM"
    module = "tvm"

    def available(self) -> str | None:
        """Whether it is installed; not loaded, because it brings an LLVM and a signal handler."""
        return None if importlib.util.find_spec("tvm") else "No module named 'tvm'"

    def version(self) -> str:
        """The version of its distribution."""
        return metadata.version("apache-tvm")

    def make(self, case: Case, threads: int) -> Made | None:
        """The program, scheduled as the stored trace says."""
        os.environ["TVM_NUM_THREADS"] = str(threads)  # read when its threads start
        program = self.program(case)
        if program is None:
            return None
        record = record_of(case)
        if not record.exists():
            message = f"TVM was not tuned for it (benchmarks/tune_tvm.py --cases {case.name})"
            raise LeftOut(message)
        tvm, target = self.library(), self.target(threads)
        s_tir = part("s_tir")
        schedule = s_tir.Schedule(program)
        trace = json.loads(record.read_text("utf-8"))["trace"]
        s_tir.schedule.Trace.apply_json_to_schedule(trace, schedule)
        packed = s_tir.transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)
        code = tvm.compile(packed(schedule.mod), target=target)["main"]
        if case.kind == "matmul":
            given = [tvm.runtime.tensor(a) for a in case.arrays.values()]
            out = tvm.runtime.empty((given[0].shape[0], given[1].shape[1]))
            return Made(lambda: code(*given, out), out.numpy)
        image = np.ascontiguousarray(case.nchw[0].transpose(1, 2, 0))
        weights = tvm.runtime.tensor(np.ascontiguousarray(case.oihw.transpose(2, 3, 1, 0)))
        for step in schedule.trace.insts:
            if step.kind.name == "TransformLayout":  # of the weights: only they may be moved
                weights = self._packed(weights, step.inputs[1], target)
        bias = case.arrays["b"].reshape(-1)
        given = [tvm.runtime.tensor(image), weights, tvm.runtime.tensor(bias)]
        out = tvm.runtime.empty((*case.layer.out, case.layer.kernels))

        def result() -> np.ndarray:
            return case.in_layout(out.numpy().transpose(2, 0, 1)[None])

        return Made(lambda: code(*given, out), result, "nhwc")

    def _packed(self, given: Any, index_map: Any, target: Any) -> Any:
        """A tensor in the layout of an index map."""
        tvm = self.library()
        te = part("te")
        shape = [tvm.tirx.IntImm("int32", n) for n in given.shape]
        back = index_map.inverse(shape)
        source = te.placeholder(given.shape, name="source")
        packed = te.compute(
            index_map.map_shape(shape), lambda *at: source(*back.map_indices(list(at)))
        )
        out = tvm.runtime.empty([int(n) for n in packed.shape])
        move = tvm.IRModule({"main": te.create_prim_func([source, packed])})
        tvm.compile(move, target=target)["main"](given, out)
        return out

    def target(self, threads: int) -> Any:
        """This processor."""
        tvm = self.library()
        cpu = tvm.target.codegen.llvm_get_system_cpu()
        return tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})

    def program(self, case: Case) -> Any | None:
        """The case as TVM's tensor expression; None if it is another kind of work."""
        te, topi = part("te"), part("topi")
        if case.kind == "matmul":
            (m, k), (_, n) = (a.shape for a in case.arrays.values())
            a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
            r = te.reduce_axis((0, k), name="r")
            c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")
            return te.create_prim_func([a, b, c])
        if case.kind != "convolution" or case.layer.groups > 1:
            return None
        layer = case.layer
        (height, width), (down, across), (dy, dx) = layer.kernel, layer.stride, layer.dilation
        x = te.placeholder((layer.height, layer.width, layer.channels), name="x")
        w = te.placeholder((height, width, layer.channels, layer.kernels), name="w")
        b = te.placeholder((layer.kernels,), name="b")
        top, bottom, left, right = layer.padding
        padded = topi.nn.pad(x, (top, left, 0), (bottom, right, 0), name="padded")
        i, j = te.reduce_axis((0, height), name="i"), te.reduce_axis((0, width), name="j")
        c = te.reduce_axis((0, layer.channels), name="c")
        shape = (*layer.out, layer.kernels)
        conv = te.compute(
            shape,
            lambda y, x, m: te.sum(
                padded[y * down + i * dy, x * across + j * dx, c] * w[i, j, c, m], axis=(i, j, c)
            ),
            name="conv",
            attrs={"layout_free_placeholders": [w]},
        )
        out = te.compute(shape, lambda y, x, m: conv[y, x, m] + b[m], name="out")
        return te.create_prim_func([x, w, b, out])


def part(name: str) -> Any:
    """A module of TVM, which is optional: a name in an import statement would have to be there."""
    return importlib.import_module(f"tvm.{name}")


def record_of(case: Case) -> Path:
    """The file of a case's trace; the layout of the program's images makes no difference."""
    return RECORDS / f"{case.name.partition(':')[0].replace('/', '_')}.json"
