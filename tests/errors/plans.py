"""One case for each refusal of a plan."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from onnx import TensorProto

import liftpy as lp
from liftpy.cli.plan_runs import RunRequest, check_folders, check_inputs, run_plan, save
from liftpy.constraints.device import Device
from liftpy.networks.options import Measured
from liftpy.networks.plan import Plan, load
from liftpy.networks.plan_file import FORMAT, HEADER, MAGIC
from liftpy.networks.running import Runner
from liftpy.opencl.devices import find_device
from liftpy.opencl.resident import Place, Resident
from liftpy.opencl.session import Session
from tests.networks.models import convolutional, model, node, value

Case = Callable[[Path], object]
ZEROS = np.zeros(3, np.float32)


def network():
    return lp.network(
        model([node("Relu", "x", "y", "relu1")], [value("x", [3])], [value("y", [3])])
    )


def plan(**changes):
    made = network().plan()
    return Plan(dataclasses.replace(made.data, **changes))


def of_strings():
    """A network with an input of a type that the language does not have."""
    given = [value("s", [3], TensorProto.STRING), value("t", [3], TensorProto.STRING)]
    made = model([node("Equal", "s t", "y", "same")], given, [value("y", [3], TensorProto.BOOL)])
    return lp.network(made, partial=True)


def strings_on_device():
    """Runs a network whose output is of strings, and asks for arrays of pyopencl."""
    text = [value("s", [1], TensorProto.STRING)], [value("y", [1], TensorProto.STRING)]
    made = lp.network(model([node("Identity", "s", "y", "same")], *text), partial=True)
    made.plan().run([np.array(["a"], object)], on_device=True)


def gathered(index):
    """A network of GatherND, which has no program."""
    nodes = [node("GatherND", "x k", "y", "gather1")]
    made = model(nodes, [value("x", [3])], [value("y", [1])], k=np.array([[index]]))
    return lp.network(made, partial=True)


def with_another_result():
    """Runs a node on the host, by a function whose result does not fit the tensor."""
    made = gathered(1).plan()
    Runner(made.graph, {}, made.layout, made.device, lambda *_: [ZEROS]).run([ZEROS])


def loaded(folder, made=None, bad=None):
    """Loads a plan, after `bad` has changed the bytes of its file."""
    path = folder / "small.plan"
    (made or plan()).save(path)
    if bad is not None:
        path.write_bytes(bad(path.read_bytes()))
    return load(path)


def fields(change):
    """A change of the fields of a file, with a right checksum."""

    def bad(data):
        length = int.from_bytes(data[44:HEADER], "little")
        found = json.loads(data[HEADER : HEADER + length])
        change(found)
        text = json.dumps(found).encode()
        return sealed(len(text).to_bytes(8, "little") + text + data[HEADER + length :])

    return bad


def sealed(rest, version=FORMAT):
    return MAGIC + version.to_bytes(4, "little") + hashlib.sha256(rest).digest() + rest


def elsewhere() -> Device:
    return dataclasses.replace(find_device(), name="Another", driver_version="0.9")


def campaign(folder, device=None):
    """Options for a device from a campaign on this one."""
    path = folder / "relu.db"
    lp.explore(network()["relu1"].program, samples=1, db=path)
    return Measured([path], device or find_device())


def modelled_campaign(folder):
    """Options from a campaign whose times are modelled."""
    path = folder / "relu.db"
    lp.explore(network()["relu1"].program, samples=1, db=path, modelled=True)
    return Measured([path], find_device())


def old_campaign(folder):
    """Options from a campaign that another version of liftpy made."""
    with mock.patch("liftpy.networks.options.VERSION", "9.9"):
        return campaign(folder)


def without_the_device(_: Path) -> object:
    with Session(find_device()) as session, Resident(session) as memory:
        memory.device = dataclasses.replace(memory.device, largest_buffer=1 << 20)
        return memory.allocate("the arena", 1 << 60)


def launched(module):
    """Launches a module with each buffer in an allocation of its own."""
    with Session(find_device()) as session, Resident(session) as memory:
        places = {b.name: Place(b.name, 0, b.bytes) for b in module.buffers}
        for name, place in places.items():
            memory.allocate(name, place.bytes)
        return memory.launch([memory.armed(module, "run", places)])


def of_another_alignment():
    with mock.patch("liftpy.networks.plan.alignment_of", return_value=1):
        return network().plan()


class Tensor:
    """A tensor of another library that does not show its memory."""

    def __dlpack__(self, **_: object) -> object:
        raise BufferError("it is on another device")


CASES: dict[str, Case] = {
    "plan_run_on_an_array_of_another_device": lambda _: plan().run([Tensor()]),
    "plan_beyond_the_memory_limit": lambda _: network().plan(memory_limit=8),
    "plan_of_orders_that_are_chosen_already": lambda _: (
        lp.network(convolutional()).channels_last().plan(choose_orders=True)
    ),
    "plan_that_is_another_file": lambda f: loaded(f, bad=lambda _: b"GIF89a"),
    "plan_of_another_format": lambda f: loaded(f, bad=lambda d: sealed(d[44:], 7)),
    "plan_that_is_cut_off": lambda f: loaded(f, bad=lambda d: d[:-1]),
    "plan_with_a_text_that_is_too_long": lambda f: loaded(
        f, bad=lambda d: sealed((1 << 40).to_bytes(8, "little") + d[HEADER:])
    ),
    "plan_with_an_unknown_field": lambda f: loaded(f, bad=fields(lambda d: d.update(code="x"))),
    "plan_without_its_program": lambda f: loaded(
        f, bad=fields(lambda d: d["programs"].__setitem__(0, "def f("))
    ),
    "plan_with_a_program_too_few": lambda f: loaded(f, bad=fields(lambda d: d["programs"].pop())),
    "plan_with_other_kernels": lambda f: loaded(
        f, bad=fields(lambda d: d["operations"][0].update(kernels="0" * 64))
    ),
    "plan_with_tensors_that_overlap": lambda f: loaded(
        f, bad=fields(lambda d: [t.update(offset=0) for t in d["tensors"]])
    ),
    "plan_of_another_version": lambda f: loaded(f, plan(version="0.0.1")),
    "plan_of_another_device": lambda f: loaded(f, plan(device=elsewhere())),
    "plan_with_offsets_that_are_not_aligned": lambda f: loaded(f, of_another_alignment()),
    "plan_whose_results_differ": lambda _: plan().check([np.zeros(3, np.float32)], -1.0),
    "plan_with_times_of_another_device": lambda f: campaign(f, device=elsewhere()),
    "plan_with_modelled_times": modelled_campaign,
    "plan_with_times_of_another_version": old_campaign,
    "plan_larger_than_a_buffer": without_the_device,
    "plan_run_without_such_an_input": lambda f: (
        loaded(f),
        run_plan(
            f / "small.plan",
            None,
            remeasure=False,
            asked=RunRequest({"q": np.zeros(3, np.float32)}),
        ),
    ),
    "run_of_a_model_without_its_strings": lambda _: check_inputs(of_strings().graph, {}),
    "run_of_a_model_into_a_folder_that_is_missing": lambda f: check_folders(f / "none" / "y.npz"),
    "plan_with_strings_on_a_device": lambda _: strings_on_device(),
    "plan_with_a_node_that_the_host_cannot_compute": lambda _: gathered(7).plan().run([ZEROS]),
    "plan_with_a_node_whose_result_does_not_fit": lambda _: with_another_result(),
    "plan_with_outputs_for_one_array": lambda f: save(
        f / "y.npy", {"y": np.zeros(3), "z": np.zeros(3)}
    ),
}
