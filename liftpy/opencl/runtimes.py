"""Register OpenCL runtimes with the ICD loader before anything asks it for platforms.

No other module of liftpy reads or writes the environment for OpenCL.

Note [Intel's runtime from PyPI]
The wheel `intel-opencl-rt` installs a good runtime that no loader finds: its own ICD file names the
path of the machine that built it, in a folder where no loader looks; and it does not depend on
`intel-cmplr-lib-rt`, without which it cannot be loaded. The loader reports neither. So liftpy looks
the library up among the installed distributions, loads its dependencies and then the library itself
(the dynamic linker knows a loaded library by its soname, so this works wherever the distributions
are installed), and writes an ICD file of its own next to copies of the system's. The libraries are
loaded with RTLD_LOCAL: Intel's `libimf` defines `exp` and similar functions, which must not replace
those of the C library in PoCL or NumPy.

Note [The loader's folders]
pyopencl's wheels bundle ocl-icd. It reads `*.icd` in the folder OCL_ICD_VENDORS (which may also be
one `.icd` file or one library), else in OPENCL_VENDOR_PATH, else in /etc/OpenCL/vendors, in
directory order; Khronos' loader uses the same OCL_ICD_VENDORS. Both read it at the first OpenCL
call of the process, not when they are loaded.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

VENDORS = "OCL_ICD_VENDORS"
RUSTICL, RUSTICL_DRIVERS = "rusticl", "RUSTICL_ENABLE"
INTEL = "libintelocl.so"

# The dependencies of Intel's library, those without dependencies of their own first, each with the
# distribution that provides it. A name that ends in `.so.` stands for the one with a version.
NEEDED = (
    ("libintlc.so.", "intel-cmplr-lib-rt"),
    ("libimf.so", "intel-cmplr-lib-rt"),
    ("libsvml.so", "intel-cmplr-lib-rt"),
    ("libirng.so", "intel-cmplr-lib-rt"),
    ("libtbb.so.", "tbb"),
)


@functools.cache
def register() -> tuple[str, ...]:
    """Register Intel's CPU runtime next to the system's, once per process; return what failed.

    Nothing happens if the runtime is not installed as a Python distribution, or not on Linux. If
    OCL_ICD_VENDORS is set it stays as it is, and Intel's libraries are loaded only if it names
    them. Never raises: the message that there is no device includes the result.
    """
    if sys.platform != "linux":
        return ()
    library = installed("intel-opencl-rt", INTEL)
    chosen = os.environ.get(VENDORS)
    if library is None or (chosen and not _names_intel(Path(chosen))):
        return ()
    note = load(library)
    if note is not None:
        return (note,)
    if chosen:
        return ()
    try:
        folder = write(icd_files(library, system_folders()))
    except OSError as error:
        return (f"The ICD files for {library} cannot be written: {error}.",)
    os.environ[VENDORS] = str(folder)
    return ()


def why_empty(platform: str) -> tuple[str, ...]:
    """Why a platform has no device and what to do, in a sentence; empty if that is not known."""
    if platform.casefold() != RUSTICL:
        return ()
    drivers = os.environ.get(RUSTICL_DRIVERS)
    why = (
        f"with {RUSTICL_DRIVERS}={drivers}"
        if drivers
        else f"because {RUSTICL_DRIVERS} is not set in the environment"
    )
    said = (
        f"Mesa's rusticl is installed and has no device, {why}: {RUSTICL_DRIVERS}=llvmpipe makes "
        "the processor a device; the name of a driver, such as radeonsi or iris, its GPUs."
    )
    return (said,)


def libraries() -> list[str]:
    """What a C program has to load for the devices that liftpy finds here, one item per line.

    `needs PATH`: libraries that a runtime needs, in order; `vendors FOLDER`: the ICD files;
    `library PATH`: the ICD loader that Intel's runtime provides. (The one in pyopencl's wheel
    crashes in programs whose heap is above 4 GiB, as in a position-independent one.)
    """
    register()
    vendors = os.environ.get(VENDORS)  # set by `register`, the user or a parent process
    needed: list[Path | None] = []
    if vendors and _names_intel(Path(vendors)):
        needed = [installed(distribution, name) for name, distribution in NEEDED]
    loader = installed("intel-opencl-rt", "libOpenCL.so.1")
    return [
        *(f"needs {path}" for path in needed if path is not None),
        *([f"vendors {vendors}"] if vendors else []),
        *([f"library {loader}"] if loader is not None else []),
    ]


def installed(distribution: str, name: str) -> Path | None:
    """The file of that name that an installed distribution provides, or None.

    A name that ends in a dot is a prefix; the shortest matching file is taken.
    """
    try:
        files = metadata.distribution(distribution).files or ()
    except metadata.PackageNotFoundError:
        return None
    fitting = [f for f in files if f.name == name or (name[-1] == "." and f.name.startswith(name))]
    paths = [Path(str(f.locate())).resolve() for f in sorted(fitting, key=lambda f: len(f.name))]
    return next((path for path in paths if path.is_file()), None)


def load(library: Path) -> str | None:
    """Load Intel's runtime and its dependencies; None, or a sentence that says why this failed."""
    needed = [installed(distribution, name) for name, distribution in NEEDED]
    try:
        for path in (*needed, library):
            if path is not None:
                ctypes.CDLL(str(path))
    except OSError as error:
        absent = sorted(
            {d for (_, d), path in zip(NEEDED, needed, strict=True) if path is None},
        )
        without = f" ({' and '.join(absent)} not installed)" if absent else ""
        refused = f"Intel's OpenCL runtime, {library}, cannot be loaded: {error}{without}"
        if not absent and (before := loaded_before([path for path in needed if path is not None])):
            others = " and ".join(map(str, before))
            return (
                f"{refused}. This process had already loaded {others}, which the dynamic linker "
                "used in place of the version that this runtime needs. Call lp.devices() before "
                "you import the package that loads it."
            )
        return f"{refused}; `pip install 'liftpy[cpu]'` installs what it needs."
    return None


def loaded_before(needed: list[Path]) -> list[Path]:
    """Other libraries in this process that have the name of a needed one, whatever their version.

    Empty if the system does not tell which libraries a process has loaded.
    """
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    loaded = {Path(f[5]) for f in fields if len(f) == 6}
    stems = {path.name.partition(".so")[0] for path in needed}
    named = (x for x in loaded if ".so" in x.name and x.name.partition(".so")[0] in stems)
    return sorted(x for x in named if x not in needed)


def system_folders() -> tuple[Path, ...]:
    """Where the loader looks if OCL_ICD_VENDORS is not set, and conda's folder."""
    system = os.environ.get("OPENCL_VENDOR_PATH") or "/etc/OpenCL/vendors"
    return Path(system), Path(sys.prefix) / "etc" / "OpenCL" / "vendors"


def icd_files(intel: Path, folders: tuple[Path, ...]) -> dict[str, str]:
    """Names and texts of the ICD files: Intel's own, and those of the folders that may be valid.

    An ICD file holds the path of a library, or its name if the dynamic linker is to find it. A file
    is left out if its path does not exist, or is that of the library `intel`.
    """
    files = {"liftpy-intel.icd": f"{intel}\n"}
    for folder in folders:
        for icd in sorted(folder.glob("*.icd")):
            text = icd.read_text(encoding="utf-8", errors="surrogateescape")
            path = Path(text.strip())
            if path.is_absolute() and (not path.is_file() or path.samefile(intel)):
                continue
            files.setdefault(icd.name, text)
    return files


def write(files: dict[str, str]) -> Path:
    """A folder that holds these files: in the user's cache, else a temporary one of this process.

    The name follows from the content, and each file appears whole, so processes that start at the
    same time agree; a damaged file is rewritten.
    """
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return _fill(Path(cache) / "liftpy" / f"opencl-{digest}", files)
    except (OSError, RuntimeError):  # no home, or one that is not writable
        folder = Path(tempfile.mkdtemp(prefix="liftpy-opencl-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return _fill(folder, files)


def _fill(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        target, data = folder / name, text.encode("utf-8", "surrogateescape")
        if not target.is_file() or target.read_bytes() != data:
            handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{name}-")
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(draft).replace(target)
    return folder


def _names_intel(vendors: Path) -> bool:
    """Whether a value of OCL_ICD_VENDORS (folder, ICD file or library) leads to Intel's runtime."""
    icds = sorted(vendors.glob("*.icd")) if vendors.is_dir() else [vendors]
    texts = (
        icd.read_text(encoding="utf-8", errors="replace") if icd.suffix == ".icd" else str(icd)
        for icd in icds
        if icd.is_file()
    )
    return any(Path(text.strip()).name.startswith(INTEL) for text in texts)
