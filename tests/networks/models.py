"""Small models for tests, made with `onnx.helper`."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

KINDS = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.bool_): TensorProto.BOOL,
}


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(operator, inputs, outputs, name="", **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), name=name, **attributes)


def model(nodes, inputs, outputs, opset=21, functions=(), imports=(), **constants):
    """A model of nodes; inputs and outputs are value infos, constants are arrays by name."""
    graph = helper.make_graph(
        nodes,
        "small",
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), *imports]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def one(operator, *shapes, outputs=1, rank=None, opset=21, constants=None, **given):
    """A model of one node, `op`, with inputs x0, x1, ... and then constants c0, c1, ...

    Its results have `rank` dimensions, by default as many as the first input.
    """
    constants = constants or []
    names = [f"x{k}" for k in range(len(shapes))], [f"c{k}" for k in range(len(constants))]
    results = [f"y{k}" for k in range(outputs)]
    made = helper.make_node(operator, [*names[0], *names[1]], results, name="op", **given)
    inputs = [value(n, shape) for n, shape in zip(names[0], shapes, strict=True)]
    return model(
        [made],
        inputs,
        [value(n, [None] * (len(shapes[0]) if rank is None else rank)) for n in results],
        opset,
        **dict(zip(names[1], constants, strict=True)),
    )


def multiplied(depth):
    """A model of some hundred bytes whose functions call each other: 10**depth nodes."""
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    functions = [
        helper.make_function("own", "F0", ["a0"], ["a10"], [node("Relu", "a0", "a10")], imports)
    ]
    for k in range(1, depth + 1):
        calls = [
            helper.make_node(f"F{k - 1}", [f"a{i}"], [f"a{i + 1}"], domain="own") for i in range(10)
        ]
        functions.append(helper.make_function("own", f"F{k}", ["a0"], ["a10"], calls, imports))
    call = helper.make_node(f"F{depth}", ["x"], ["y"], domain="own")
    return model(
        [call], [value("x", [3])], [value("y", [3])], functions=functions, imports=imports[1:]
    )


def recursive():
    """A model with a function that calls itself."""
    made = multiplied(2)
    made.functions[0].node.add(op_type="F2", domain="own", input=["a0"], output=["b"])
    return made


def convolutional(seed=3):
    """Convolution, batch normalization, ReLU, pooling, a residual, flatten, dense, softmax."""
    rng = np.random.default_rng(seed)

    def some(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    nodes = [
        node("Conv", "x w1 b1", "c1", "conv1", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", "c1 scale shift mean var", "n1", "norm1"),
        node("Relu", "n1", "r1", "relu1"),
        node("Conv", "r1 w2", "c2", "conv2", pads=[1, 1, 1, 1]),
        node("Conv", "c2 w2", "c3", "conv3", pads=[1, 1, 1, 1]),
        node("Add", "c3 r1", "a1", "add1"),
        node("MaxPool", "a1", "p1", "pool1", kernel_shape=[3, 3], strides=[2, 2]),
        node("Shape", "p1", "s1", "shape1"),
        node("Gather", "s1 zero", "batch", "gather1"),
        node("Unsqueeze", "batch axes", "batches", "unsqueeze1"),
        node("Concat", "batches rest", "flat", "concat1", axis=0),
        node("Reshape", "p1 flat", "f1", "reshape1"),
        node("Gemm", "f1 w3 b3", "g1", "dense1", transB=1),
        node("Softmax", "g1", "y", "softmax1", axis=1),
    ]
    return model(
        nodes,
        [value("x", ["N", 3, 11, 13])],
        [value("y", ["N", 7])],
        w1=some(5, 3, 3, 3),
        b1=some(5),
        scale=some(5),
        shift=some(5),
        mean=some(5),
        var=np.abs(some(5)) + np.float32(0.5),
        w2=some(5, 5, 3, 3),
        w3=some(7, 5 * 2 * 3),
        b3=some(7),
        zero=np.int64(0),
        axes=np.array([0]),
        rest=np.array([-1]),
    )
