"""A network that runs without Python has the results that it has with it."""

import dataclasses
import hashlib
import os
import re
import shutil
import subprocess

import numpy as np
import onnx.parser
import pytest
from typer.testing import CliRunner

import liftpy as lp
from liftpy.boards.network_bundle import HOST_OF_NETWORK
from liftpy.cli.application import application
from liftpy.explore import one_candidate
from liftpy.networks import options
from liftpy.networks.plan import Plan
from liftpy.networks.schedule import Pack, schedule_of
from liftpy.opencl.clock import BY_HOST
from liftpy.rewrite import composition
from liftpy.rewrite.strategies.families import choices_of
from tests.boards.ran import with_change
from tests.conftest import built
from tests.networks.models import model, node, value

#: Results from the arena, from an input and from the constants; parts that share storage; integers.
MIXED = """
<ir_version: 10, opset_import: ["" : 21]>
mixed (float[1, 5, 32] x, int64[7] k, float[3] unread)
   => (float[1, 10, 32] y, int64[7] kk, float[2] c, float[3] unread2, bool[7] b)
<float[2] w = {1.5, -2.25}> {
  r = Relu (x)
  s = Neg (x)
  y = Concat <axis = 1> (r, s)
  kk = Mul (k, k)
  zero = Sub (k, k)
  b = Greater (kk, zero)
  c = Identity (w)
  unread2 = Identity (unread)
}"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program `network`, built as a bundle builds it."""
    return built(HOST_OF_NETWORK, tmp_path_factory.mktemp("host")) / "network"


SHAPE = (1, 3, 5, 7)


def normalized():
    """A convolution whose weights are scaled by a batch normalization, in a prepare phase."""
    rng = np.random.default_rng(6)
    statistics = {n: rng.uniform(0.5, 2, 2).astype(np.float32) for n in ("s", "b", "m", "v")}
    weights = rng.standard_normal((2, 3, 1, 1)).astype(np.float32)
    nodes = [node("Conv", "x w", "a"), node("BatchNormalization", "a s b m v", "y")]
    inputs, outputs = [value("x", SHAPE)], [value("y", (1, 2, 5, 7))]
    return model(nodes, inputs, outputs, w=weights, **statistics)


@pytest.fixture(scope="module")
def original(pocl, tmp_path_factory):
    """A network with packed constants: its plan, of candidates of one family, and its bundle."""
    folder = tmp_path_factory.mktemp("network")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_candidate, "families_for", lambda *_: ("plain",))
        plan = lp.network(normalized()).joined().plan(device=pocl)
    with plan:
        plan.save(folder / "small.plan")
        steps = schedule_of(plan.graph, plan.modules, plan.layout).prepare
    assert any(isinstance(step, Pack) for step in steps)
    lp.export(folder / "small.plan", folder / "bundle", seed=3)
    (folder / "bundle" / "library.txt").unlink()  # the system's loader finds PoCL
    return folder


@pytest.fixture
def small(original, tmp_path):
    """A copy of its bundle."""
    return shutil.copytree(original / "bundle", tmp_path / "bundle")


def run(program, bundle, *options, device="portable"):
    environment = {n: v for n, v in os.environ.items() if n != "OCL_ICD_VENDORS"}
    command = [program, "--bundle", bundle, "--device", device, *options]
    return subprocess.run(
        list(map(str, command)),
        capture_output=True, text=True, check=False, env=environment, timeout=300,
    )  # fmt: skip


def results(folder):
    return {path.stem: np.load(path) for path in folder.iterdir()}


def test_the_stored_inputs_give_the_stored_results(program, small):
    found = run(program, small, "--check")
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("checked y: error ")


@pytest.mark.parametrize("kind", ["npy", "bin"])
def test_given_inputs_give_the_results_of_python(program, original, small, tmp_path, kind):
    x = np.random.default_rng(8).standard_normal(SHAPE).astype(np.float32)
    file = tmp_path / f"x.{kind}"
    np.save(file, x) if kind == "npy" else x.tofile(file)
    found = run(program, small, "--input", f"x={file}", "--output", tmp_path / "out")
    assert found.returncode == 0, found.stderr
    with lp.load(original / "small.plan") as plan:
        np.testing.assert_array_equal(results(tmp_path / "out")["y"], plan.run([x])["y"])


def test_results_that_no_kernel_writes_are_there(program, pocl, tmp_path):
    with lp.network(onnx.parser.parse_model(MIXED)).plan(device=pocl) as plan:
        lp.export(plan, tmp_path / "bundle")
        inputs = plan.random_inputs()
        wanted = plan.run(inputs)
    (tmp_path / "bundle" / "library.txt").unlink()
    found = run(program, tmp_path / "bundle", "--check", "--output", tmp_path / "out")
    assert found.returncode == 0, found.stderr
    got = results(tmp_path / "out")
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array)
        assert got[name].dtype == array.dtype


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("clock.c", "between / 2", "between * 1e6", id="standing"),
        pytest.param("resident.c", "CL_QUEUE_PROFILING_ENABLE", "0", id="missing"),
    ],
)
def test_a_network_without_a_clock_that_advances_is_timed_by_the_host_s(
    program, small, tmp_path, file, old, new
):
    """Each clock of this machine advances: the program is changed so that it finds none."""
    source = tmp_path / "source"
    changed = with_change(HOST_OF_NETWORK, program.parent, source, file, old, new)
    said = run(built(changed, tmp_path) / "network", small, "--check", "--repeats", "2")
    assert said.returncode == 0, said.stderr
    assert BY_HOST in said.stdout
    times = re.findall(r"^operation ([\d.]+) ms", said.stdout, re.MULTILINE)
    assert times
    assert min(map(float, times)) > 1e-4


def test_a_wrong_constant_is_found(program, small):
    plan, file = small / "plan.txt", small / "weights.bin"
    content = file.read_bytes()
    wrong = np.frombuffer(content, np.float32) * np.float32(1.01)
    sums = [hashlib.sha256(t).hexdigest() for t in (content, wrong.tobytes())]
    file.write_bytes(wrong.tobytes())
    plan.write_text(plan.read_text().replace(*sums))
    found = run(program, small, "--check")
    assert found.returncode == 1
    assert "y is wrong: element" in found.stderr


def test_a_tensor_that_is_not_written_is_found(program, small):
    """The launch of the last operation is left out: memory has what it was filled with."""
    plan = small / "plan.txt"
    lines = plan.read_text().splitlines()
    del lines[max(k for k, line in enumerate(lines) if line.startswith("launch "))]
    plan.write_text("\n".join([*lines, ""]))
    found = run(program, small, "--check")
    assert found.returncode == 1, found.stderr
    assert "is wrong" in found.stderr


def saved(folder, array):
    np.save(folder / "x.npy", array)
    return ["--input", f"x={folder / 'x.npy'}"]


X = np.zeros(SHAPE, np.float32)
REFUSED = {
    "a shape": (lambda f: saved(f, X[0]), "its shape is (3,5,7)\nx has the shape (1,3,5,7)"),
    "a type": (lambda f: saved(f, X.astype(float)), "its descr is <f8\nx has the descr <f4"),
    "an order": (lambda f: saved(f, np.asfortranarray(X)), "its fortran_order is True"),
    "a name": (lambda _: ["--input", "z=z.npy"], "small has no input z\nits inputs are: x"),
    "no file": (lambda _: ["--input", "x=z.npy"], "z.npy cannot be read: it is to be the input x"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_inputs_that_do_not_fit_are_refused(program, small, tmp_path, case):
    options, message = REFUSED[case]
    found = run(program, small, *options(tmp_path))
    assert found.returncode == 1
    assert message in found.stderr


@pytest.mark.parametrize("file", ["plan.txt", "weights.bin", "inputs/x.bin", "kernels/0.cl"])
def test_a_file_that_did_not_arrive_whole_is_refused(program, small, file):
    content = (small / file).read_bytes()
    (small / file).write_bytes(content[: len(content) // 2])
    found = run(program, small, "--check")
    assert found.returncode == 1
    assert "again" in found.stderr


def test_a_device_whose_offsets_are_coarser_is_refused(program, small):
    plan = small / "plan.txt"
    text = plan.read_text()
    size = next(line for line in text.splitlines() if line.startswith("arena ")).split()[1]
    plan.write_text(text.replace(f"arena {size} 128", f"arena {size} 4"))
    found = run(program, small)
    assert found.returncode == 1
    assert "tensors are at multiples of 4 bytes" in found.stderr


def test_the_device_of_a_plan_need_not_be_there_to_export_it(program, original, tmp_path):
    plan = lp.load(original / "small.plan")
    device = dataclasses.replace(plan.device, name="Another", platform="Elsewhere")
    plan.close()
    Plan(dataclasses.replace(plan.data, device=device)).save(tmp_path / "other.plan")
    command = ["export", str(tmp_path / "other.plan"), "-o", str(tmp_path / "bundle")]
    result = CliRunner().invoke(application("export"), command)
    assert result.exit_code == 0, result.output
    (tmp_path / "bundle" / "library.txt").unlink()
    environment = {n: v for n, v in os.environ.items() if n != "OCL_ICD_VENDORS"}
    command = [str(program), "--bundle", str(tmp_path / "bundle")]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "the bundle is for Elsewhere: Another, which this machine lacks" in found.stderr
    assert run(program, tmp_path / "bundle", "--check").returncode == 0


def test_options_that_choose_a_candidate_do_not_fit_a_plan(original, tmp_path):
    command = ["export", str(original / "small.plan"), "--set", "family=plain", "-o", str(tmp_path)]
    result = CliRunner().invoke(application("export"), command)
    assert result.exit_code == 2
    assert "a plan has its candidates" in result.output


def only_images(family, form, program, *, images=False):
    """The choices of a family that read everything through images."""
    del images
    every = choices_of(family, form, program, images=True)
    return (choices for choices in every if ("images", "all") in choices)


def test_a_network_reads_images_of_parts_of_its_memory(program, device, tmp_path, monkeypatch):
    """Intel's runtime has them; PoCL has only images of whole buffers."""
    rng = np.random.default_rng(9)
    weights = {n: rng.standard_normal((8, 8, 1, 1)).astype(np.float32) for n in ("v", "w")}
    nodes = [node("Conv", "x v", "a"), node("Conv", "a w", "y")]
    shape = (1, 8, 5, 7)
    made = model(nodes, [value("x", shape)], [value("y", shape)], **weights)
    monkeypatch.setattr(one_candidate, "families_for", lambda *_: ("direct",))
    monkeypatch.setattr(composition, "choices_of", only_images)
    x = rng.standard_normal(shape).astype(np.float32)
    with lp.network(made).plan(device=device) as plan:
        assert all("read_imagef(" in module.source for module in plan.modules.values())
        expected = np.einsum(
            "kj,ji,nirc->nkrc", *(w[:, :, 0, 0] for w in (weights["w"], weights["v"])), x
        )
        for scale in (1, -3):
            got = plan.run({"x": np.float32(scale) * x})["y"]
            np.testing.assert_allclose(got, scale * expected, rtol=1e-4, atol=1e-4)
        plan.save(tmp_path / "small.plan")
    lp.export(tmp_path / "small.plan", tmp_path / "bundle", seed=3)
    assert " 16" in (tmp_path / "bundle" / "plan.txt").read_text()
    found = run(program, tmp_path / "bundle", "--check", device="intel")
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("checked y: error ")


def test_a_network_launches_the_kernels_of_a_loop_again(program, device, tmp_path, monkeypatch):
    """The transformed tiles and products of a convolution by F(2, 3), a band at a time."""
    rng = np.random.default_rng(4)
    weights = {"w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32)}
    x = rng.standard_normal((1, 3, 12, 12)).astype(np.float32)
    nodes = [node("Conv", "x w", "y", kernel_shape=[3, 3])]
    made = model(nodes, [value("x", x.shape)], [value("y", (1, 4, 10, 10))], **weights)
    banded = {"winograd": "2x2", "inputs": "held", "products": "held", "result.family": "banded"}

    def in_bands(program, device, _):
        return one_candidate.candidate_of(program, device, banded)

    monkeypatch.setattr(options, "candidate_of", in_bands)
    with lp.network(made).plan(device=device) as plan:
        (module,) = plan.modules.values()
        assert {x.iteration for x in module.launches} > {None, 0, 1}
        expected = plan.run({"x": x})["y"]
        windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), (1, 2))
        right = np.einsum("crsij,kcij->krs", windows, weights["w"])
        np.testing.assert_allclose(expected[0], right, rtol=1e-4, atol=1e-4)
        plan.save(tmp_path / "small.plan")
    lp.export(tmp_path / "small.plan", tmp_path / "bundle", seed=3)
    found = run(program, tmp_path / "bundle", "--check")
    assert found.returncode == 0, found.stderr
    path = tmp_path / "bundle" / "plan.txt"
    whole = path.read_text()
    assert re.search(r"_output@1 ", whole)
    path.write_text(re.sub(r"(_output)@1 ", r"\1@0 ", whole))
    assert "y is wrong" in run(program, tmp_path / "bundle", "--check").stderr
