"""A worker process and its loss. Workers that misbehave are scripts that speak the protocol."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import psutil
import pytest

import liftpy
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import InternalError, WorkerRefused
from liftpy.explore.measure import process
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.measurer import BENCH
from liftpy.explore.measure.messages import Measure, Ready, Setup, Unfit
from liftpy.explore.measure.outcome import Crashed, Defect, TimedOut
from liftpy.explore.measure.process import STARTS, IdleProcesses, Worker
from liftpy.explore.measure.serving import first_to_go
from liftpy.opencl.kernel import MemoryFigures, Module
from tests.processes import SECONDS, started, until

SETUP = Setup("", DEFAULT_DEVICE, Inputs(()), ())
REQUEST = Measure(Module("m", "", (), (), (), "out", MemoryFigures(0, 0, 0, 0, 0, 0)), None, 20.0)

# A worker that greets, takes a request, and then does what a test says. It does not decode
# messages, so it need not import liftpy.
MISBEHAVES = f"""
import os, signal, sys, time
from multiprocessing.connection import Connection
READY = {pickle.dumps(Ready())!r}
c = Connection(int(sys.argv[1]))
def greet():
    c.send_bytes(READY)
    c.recv_bytes()
"""


@pytest.fixture
def misbehaving(tmp_path):
    started = []

    def start(script, *, reads=True):
        file = tmp_path / "worker.py"
        file.write_text(f"{MISBEHAVES}{'c.recv_bytes()' if reads else ''}\n{script}")
        worker = Worker("measures candidates", BENCH, SETUP, [sys.executable, str(file)])
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()


def ask(worker, seconds=SECONDS):
    return worker.ask(REQUEST, seconds, 60.0, "timing it")


def test_a_hang_is_cut_short(misbehaving):
    worker = misbehaving("greet(); time.sleep(600)")
    worker.start()
    assert ask(worker, seconds=0.5) == TimedOut(60.0, "timing it")


HALF = "os.write(c.fileno(), (1000).to_bytes(4, 'big') + b'half'); time.sleep(600)"


@pytest.mark.parametrize(
    ("script", "request_bytes"),
    [
        (f"greet(); {HALF}", 0),
        ("c.send_bytes(READY); time.sleep(600)", 10_000_000),
        ("c.send_bytes(READY); c.recv_bytes(); os.kill(os.getpid(), signal.SIGSTOP)", 0),
    ],
    ids=["half an answer", "it does not read", "it is stopped"],
)
def test_a_hang_within_a_message_is_cut_short(misbehaving, script, request_bytes):
    others = set(threading.enumerate())  # of workers that other tests have left running
    worker = misbehaving(script)
    worker.start()
    request = replace(REQUEST, module=replace(REQUEST.module, source="x" * request_bytes))
    assert worker.ask(request, 0.5, 60.0, "timing it") == TimedOut(60.0, "timing it")
    left = [t.name for t in threading.enumerate() if t not in others and "carry" in t.name]
    assert left == [], "no thread is left"


@pytest.mark.parametrize("script", [HALF, "time.sleep(600)"])
def test_a_hang_while_it_is_told_what_the_campaign_is_ends_the_start(
    misbehaving, monkeypatch, script
):
    monkeypatch.setattr(sys.modules[Worker.__module__], "START_LIMIT", 1.0)
    worker = misbehaving(script, reads=False)
    worker.setup = replace(SETUP, text="x" * 10_000_000)  # no buffer of a socket holds so much
    with pytest.raises(WorkerRefused, match="it gave no answer for 1 s"):
        worker.start()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("c.send_bytes(b'garbage')", "UnpicklingError"),
        ("c.send_bytes(b'cbuiltins\\nint\\n(Vx\\nVy\\ntR.')", "TypeError"),
        ("c.send_bytes(b'cbuiltins\\ndivmod\\n(I1\\nI0\\ntR.')", "ZeroDivisionError"),
        ("os.write(c.fileno(), b'\\xff' * 12)", "OverflowError"),
    ],
    ids=["no pickle", "wrong arguments", "any exception", "a length beyond memory"],
)
def test_what_is_no_message_is_a_loss(misbehaving, script, why):
    outcome = ask(misbehaving(f"greet(); {script}; time.sleep(600)"))
    assert isinstance(outcome, Crashed)
    assert f"while timing it, its answer cannot be read: {why}" in outcome.reason


def test_a_crash_is_an_outcome_with_what_was_printed(misbehaving):
    script = """
greet()
print("LLVM ERROR: out of registers", file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""
    outcome = ask(misbehaving(script))
    assert isinstance(outcome, Crashed)
    assert outcome.reason.startswith("while timing it, ")
    assert "signal SIGSEGV: LLVM ERROR: out of registers" in outcome.reason


def test_an_exception_is_a_defect(misbehaving):
    outcome = ask(misbehaving("greet(); {}['gid0']"))
    assert isinstance(outcome, Defect)
    assert "exit code 1: KeyError: 'gid0'" in outcome.reason


def test_after_a_loss_the_next_request_gets_another_process(misbehaving):
    worker = misbehaving("greet(); os._exit(5)")
    for starts in (1, 2):
        assert "exit code 5" in ask(worker).reason
        assert worker.started == starts


def test_a_process_that_died_between_two_requests_is_nobodys_doing(misbehaving):
    worker = misbehaving("greet(); c.send('done'); c.recv_bytes()")
    assert ask(worker) == "done"
    (process,) = started(worker.command[-1])
    process.kill()
    process.wait()
    assert ask(worker) == "done"
    assert worker.started == 2


def test_a_worker_that_cannot_start_is_not_the_candidates_fault(misbehaving):
    worker = misbehaving("sys.exit('no')")
    with pytest.raises(WorkerRefused, match=r"measures candidates .*\(3 attempts\): .* code 1: no"):
        ask(worker)
    assert worker.started == STARTS


def test_a_worker_that_is_killed_while_it_starts_is_started_again(misbehaving, tmp_path):
    once = tmp_path / "once"
    script = f"""
if not os.path.exists({str(once)!r}):
    open({str(once)!r}, "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
greet(); c.send("done"); c.recv_bytes()
"""
    worker = misbehaving(script)
    assert ask(worker) == "done"
    assert worker.started == 2


def test_a_worker_that_raises_when_it_starts_is_a_defect(misbehaving):
    worker = misbehaving("{}['gid0']")
    with pytest.raises(InternalError, match="KeyError: 'gid0'"):
        ask(worker)
    assert worker.started == 1


def test_where_the_system_forbids_to_go_first_it_is_said_once(misbehaving, tmp_path, caplog):
    note = first_to_go(tmp_path)  # a folder: nobody, root neither, can write it
    assert f"{tmp_path} cannot be written (Is a directory)" in note
    ready = pickle.dumps(Ready(note))
    script = f"c.send_bytes({ready!r}); c.recv_bytes(); c.send('done'); c.recv_bytes()"
    for _ in range(2):
        worker = misbehaving(script)
        assert ask(worker) == "done"
    assert [record.getMessage() for record in caplog.records] == [note]
    usual = tmp_path / "oom_score_adj"
    usual.touch()
    assert (first_to_go(usual), usual.read_text()) == ("", "1000")


# A debugger, the worker's child, is attached to it: the system hands over the end of a traced
# process to its tracer, and to nobody else before that has seen it. This one never looks.
TRACED = """
import ctypes
def hold():
    libc = ctypes.CDLL(None)
    seen, say = os.pipe()
    libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER: any process may
    if (tracer := os.fork()) == 0:
        c.close()
        holds = libc.ptrace(0x4206, os.getppid(), None, None) == 0  # PTRACE_SEIZE
        os.write(say, b"y" if holds else b"n")
        time.sleep(600 * holds)
        os._exit(0)
    if os.read(seen, 1) == b"n":
        sys.exit("not traced")
    open({folder!r} + "/tracer", "w").write(str(tracer))
if os.path.exists({folder!r} + "/tracer"):  # the second worker
    greet(); c.send("done"); c.recv_bytes()
hold()
greet()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ptrace as Linux has it")
@pytest.mark.parametrize(
    ("then", "seconds", "outcome", "how"),
    [
        ("time.sleep(600)", 0.5, TimedOut, "timing it did not end within 60 s"),
        (
            "c.close(); time.sleep(600)",
            SECONDS,
            Crashed,
            "closed its connection and was killed, but does not",
        ),
    ],
    ids=["it hangs", "it says no more"],
)
def test_a_process_that_the_system_does_not_end_is_left_behind_and_said(
    misbehaving, monkeypatch, tmp_path, caplog, then, seconds, outcome, how
):
    monkeypatch.setattr(sys.modules[Worker.__module__], "END_LIMIT", 0.5)
    limits = []
    wait = subprocess.Popen.wait

    def waited(self, timeout=None):
        limits.append(timeout)
        return wait(self, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", waited)
    worker = misbehaving(TRACED.format(folder=str(tmp_path)) + then)
    try:
        try:
            process = worker.start()._process
        except WorkerRefused as refusal:
            pytest.skip(f"a process may not trace another here: {refusal}")
        lost = ask(worker, seconds)
        assert isinstance(lost, outcome)
        assert how in lost.reason
        (record,) = caplog.records
        assert record.getMessage().startswith(
            f"the process that measures candidates (process {process.pid}, state zombie) was killed"
        )
        assert process.returncode is None
        assert limits.count(0.5) == (2 if outcome is Crashed else 1)
        assert ask(worker) == "done"
    finally:
        if (tracer := tmp_path / "tracer").exists():
            os.kill(int(tracer.read_text()), signal.SIGKILL)
    until(lambda: process.returncode == -signal.SIGKILL)


def running(script, folder):
    """The command of a worker that runs a script."""
    file = folder / "worker.py"
    file.write_text(script)
    return [sys.executable, str(file)]


COUNTS = f"""
import os, pickle, sys
from multiprocessing.connection import Connection
READY = {pickle.dumps(Ready())!r}
c = Connection(int(sys.argv[1]))
while True:
    told = c.recv_bytes()
    c.send_bytes(READY if b"Setup" in told else pickle.dumps(os.getpid()))
"""


def test_a_process_that_waits_is_left_to_the_next_campaign(tmp_path):
    command = running(COUNTS, tmp_path)
    with IdleProcesses() as idle:
        first = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        own = ask(first)
        first.leave()
        next_one = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        beside = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        assert ask(next_one) == own
        assert ask(beside) != own
        next_one.leave()
        beside.kill()  # of a campaign that ended abruptly
        os.kill(own, signal.SIGKILL)
        until(lambda: not psutil.pid_exists(own) or psutil.Process(own).status() == "zombie")
        last = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        left = ask(last)
        assert left != own
        last.leave()
    until(lambda: not psutil.pid_exists(left))


ONCE = f"""
import os, pickle, sys
from multiprocessing.connection import Connection
READY = {pickle.dumps(Ready())!r}
UNFIT = {pickle.dumps(Unfit("no"))!r}
c = Connection(int(sys.argv[1]))
campaigns = 0
while True:
    told = c.recv_bytes()
    campaigns += b"Setup" in told
    if campaigns == 2 and HOW == "unfit":
        c.send_bytes(UNFIT)
    elif campaigns == 2:
        raise ValueError("a device that does not give its memory back")
    c.send_bytes(READY if b"Setup" in told else pickle.dumps(os.getpid()))
"""


@pytest.mark.parametrize("how", ["unfit", "dies"])
def test_one_that_fails_for_the_next_campaign_is_replaced(how, tmp_path):
    command = running(f"HOW = {how!r}\n{ONCE}", tmp_path)
    with IdleProcesses() as idle:
        first = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        own = ask(first)
        first.leave()
        next_one = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        assert ask(next_one) != own
        next_one.kill()


PRINTS = f"""
import pickle, sys
from multiprocessing.connection import Connection
READY = {pickle.dumps(Ready())!r}
c = Connection(int(sys.argv[1]))
campaigns = 0
while True:
    told = c.recv_bytes()
    campaigns += b"Setup" in told
    if b"Setup" in told:
        c.send_bytes(READY)
    elif campaigns == 1:
        print("Traceback (most recent call last):", flush=True)
        c.send_bytes(pickle.dumps("handled"))
    else:
        sys.exit(3)
"""


def test_what_it_printed_for_an_earlier_campaign_does_not_count(tmp_path):
    command = running(PRINTS, tmp_path)
    with IdleProcesses() as idle:
        first = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        assert ask(first) == "handled"
        first.leave()
        next_one = Worker("measures candidates", BENCH, SETUP, command, idle=idle)
        assert isinstance(ask(next_one), Crashed)


def test_one_that_has_not_answered_is_not_left(misbehaving):
    worker = misbehaving("greet(); time.sleep(600)")
    with IdleProcesses() as idle:
        worker.idle = idle
        process = worker.begin()
        worker.leave()
        assert not process.alive
        assert idle.take(worker.command, 1 << 40) is None


def test_a_device_that_is_gone_is_said():
    worker = Worker("measures candidates", BENCH, SETUP)
    with pytest.raises(WorkerRefused, match="has no device generic"):
        worker.start()
    worker.kill()


def test_a_worker_imports_the_liftpy_of_its_parent_from_any_folder(tmp_path):
    """Names inside the package, such as `files`, are not on its path."""
    code = "import liftpy, importlib.util as u; print(liftpy.__file__, u.find_spec('opencl'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=process._environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [liftpy.__file__, "None"]
