"""What each built-in program computes, in plain numpy and float64: whole arrays, slices, products.

`CASES` gives small sizes, most of them odd or prime, for every family.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import numpy as np

from liftpy.ir.program import Program
from liftpy.workloads.convolution import Convolution, by_channel, dilated, in_groups, strided

Array = np.ndarray


#: Programs that are tried with windows that have several largest elements.
TIED = {"pool/argmax", "pool/all", "pool/first", "pool/shared"}


def inputs(family: str, program: Program, *, ties: bool = True) -> dict[str, Array]:
    """Arrays for a program of a family: numbers of both signs, no two equal, where it can be.

    ties: whether some numbers are equal, for the programs in `TIED`.
    """
    rng = np.random.default_rng(3)
    arrays: dict[str, Array] = {}
    for p in program.params:
        shape = tuple(int(n) for n in getattr(p.type, "shape", ()))
        count = int(np.prod(shape))
        # distinct multiples of a small number, none of them zero, of both signs
        values = (rng.permutation(count) - count // 2 + 0.25) * (3 / max(7, count))
        values = values if shape else rng.uniform(0.5, 2)
        arrays[p.name] = np.float32(values).reshape(shape)
    if family in {"stencil/srad", "stencil/sradstep", "blackscholes"}:  # of intensities, of prices
        arrays = {n: np.abs(a) + 1 for n, a in arrays.items()}
    if ties and family in TIED:
        arrays["x"] = np.floor(2 * arrays["x"])
    if family == "pool/argmaxback":  # of windows of 3x3, also in the padding
        arrays["places"] = (np.abs(arrays["places"]) * 1000 % 9).astype(np.uint8)
    if family == "stencil/acoustic":
        arrays["room"] = (arrays["room"] > -1).astype(np.float32)
    if family == "md":  # some pairs within the cutoff, none so near that it outweighs all others
        arrays["p"] = (arrays["p"] * 2).astype(np.float32)
    return arrays


def layer(sizes: Callable[..., Convolution]) -> Callable[..., Array]:
    """The reference of a convolution family."""
    return lambda numbers, x, w, b: convolved(sizes(*numbers), x, w, b)


def channels_first(reference: Callable[..., Array]) -> Callable[..., Array]:
    """The reference of the same convolution on images and kernels with channels outermost."""

    def moved(numbers, x, w, b):
        out = reference(numbers, np.moveaxis(x, -3, -1), np.moveaxis(w, -3, -1), b)
        return np.moveaxis(out, -1, -3)

    return moved


def convolved(layer: Convolution, x: Array, w: Array, b: Array) -> Array:
    """A convolution as a sum of moved, weighted images: no window is ever made."""
    top, bottom, left, right = layer.padding
    padded = np.pad(x, ((top, bottom), (left, right), (0, 0)))
    rows, columns = layer.out
    # one weight for each output channel, place in the kernel, and input channel; zero off the group
    dense = np.zeros((layer.kernels, *layer.kernel, layer.channels))
    share, own = layer.channels // layer.groups, layer.kernels // layer.groups
    for m in range(layer.kernels):
        group, of = divmod(m, own)
        if layer.depthwise:
            dense[m, :, :, m] = w[:, :, m]
        else:
            kernel = w[group, of] if layer.groups > 1 else w[m]
            dense[m, :, :, group * share : (group + 1) * share] = kernel
    out = np.zeros((rows, columns, layer.kernels)) + b.reshape(-1)
    for i, j in product(*map(range, layer.kernel)):
        y, z = i * layer.dilation[0], j * layer.dilation[1]
        part = padded[y : y + rows * layer.stride[0], z : z + columns * layer.stride[1]]
        part = part[:: layer.stride[0], :: layer.stride[1]][:rows, :columns]
        out += part @ dense[:, i, j].T
    return out


def pooled(f: Callable[..., Array], edge: float) -> Callable[..., Array]:
    """A reference for pooling."""

    def reference(sizes, x):
        _, _, _, k, s = sizes
        half = (k - 1) // 2
        padded = np.pad(x, ((half, half), (half, half), (0, 0)), constant_values=edge)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (0, 1))[::s, ::s]
        return f(windows, (3, 4))

    return reference


def windows_of(x: Array, k: int, s: int, edge: float) -> Array:
    """The elements of each window of a padded image: `[rows][columns][channels][k*k]`."""
    half = (k - 1) // 2
    padded = np.pad(x, ((half, half), (half, half), (0, 0)), constant_values=edge)
    found = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (0, 1))[::s, ::s]
    return found.reshape(*found.shape[:3], k * k)


def largest_apart(sizes, x):
    """The largest of k x k elements that are d apart, in windows s apart."""
    h, w, c, k, s, d = sizes
    rows, columns = ((n - d * (k - 1) - 1) // s + 1 for n in (h, w))
    out = np.full((rows, columns, c), -np.inf)
    for i, j in product(range(k), repeat=2):
        part = x[i * d :, j * d :][::s, ::s][:rows, :columns]
        out = np.maximum(out, part)
    return out


def largest_rounded_up(sizes, x):
    """The largest element of each window, also of those that end outside the image."""
    h, w, _, k, s = sizes
    rows, columns = (range(0, n - k + s, s) for n in (h, w))  # none begins outside
    return np.array([[x[i : i + k, j : j + k].max((0, 1)) for j in columns] for i in rows])


def largest_with_place(sizes, x):
    """The largest element of each window, and the first place where it is."""
    windows = windows_of(x, *sizes[3:], -np.inf)
    return windows.max(-1), windows.argmax(-1)


def largest_with_mask(ties: str) -> Callable[..., tuple[Array, Array]]:
    """A reference for the largest elements and their mask: `[k][k][rows][columns][channels]`."""

    def reference(sizes, x):
        windows = windows_of(x, *sizes[3:], -np.inf)
        mask = windows == windows.max(-1, keepdims=True)
        if ties == "first":
            mask &= mask.cumsum(-1) == 1
        mask = mask / (mask.sum(-1, keepdims=True) if ties == "shared" else 1)
        k = sizes[3]
        return windows.max(-1), np.moveaxis(mask, -1, 0).reshape(k, k, *mask.shape[:3])

    return reference


def put_back(sizes, mask, d):
    """What each window adds to the image: its cotangent times its mask."""
    h, w, c, k, s = sizes
    half = (k - 1) // 2
    image = np.zeros((h + 2 * half, w + 2 * half, c))
    for i, j in np.ndindex(d.shape[:2]):
        image[i * s : i * s + k, j * s : j * s + k] += mask[:, :, i, j] * d[i, j]
    return image[half : half + h, half : half + w]


def put_at_places(sizes, places, d):
    """Each cotangent, added at a place in its window."""
    k = sizes[3]
    mask = (places == np.arange(k * k).reshape(k, k, 1, 1, 1)).astype(float)
    return put_back(sizes, mask, d)


def near(x: Array, *offset: int, mode: str = "edge") -> Array:
    """The array moved so that each cell holds its neighbour at an offset."""
    wide = np.pad(x, 2, mode=mode)
    return wide[tuple(slice(2 + by, 2 + by + n) for by, n in zip(offset, x.shape, strict=True))]


def arms(x: Array, reach: int = 1, mode: str = "edge") -> list[Array]:
    """The neighbours along each axis."""
    unit = np.eye(x.ndim, dtype=int)
    return [
        near(x, *(by * unit[axis]), mode=mode)
        for distance in range(1, reach + 1)
        for axis in range(x.ndim)
        for by in (-distance, distance)
    ]


def box(x: Array, weights: Array) -> Array:
    """A sum of moved arrays, each by its weight."""
    half = [n // 2 for n in weights.shape]
    places = np.ndindex(weights.shape)
    return sum(weights[p] * near(x, *(a - b for a, b in zip(p, half, strict=True))) for p in places)


def hotspot(sizes, x, power):
    h, w = sizes
    t, k, heat = 0.0005, 100, 1.75e6 * 0.5
    dy, dx = 0.016 / h, 0.016 / w
    capacity = heat * t * dx * dy
    rx, ry, rz = dx / (2 * k * t * dy), dy / (2 * k * t * dx), t / (k * dx * dy)
    step = 0.001 * heat * t / 3e6
    n, s, west, e = arms(x)
    change = power + (n + s - 2 * x) / ry + (west + e - 2 * x) / rx + (80 - x) / rz
    return x + step / capacity * change


def stencil2d(sizes, x):
    weights = np.full((3, 3), 0.05)
    weights[1] = weights[:, 1] = 0.15
    weights[1, 1] = 0.25
    return box(x, weights)


def separable(sizes, x, across, down):
    """Each cell of the input adds to the cells around it: one pass, no border."""
    h, w, k = sizes
    wide = np.zeros((h + k - 1, w + k - 1))
    for i, j in product(range(k), repeat=2):
        wide[i : i + h, j : j + w] += x * down[k - 1 - i] * across[k - 1 - j]
    before = k - 1 - k // 2
    return wide[before : before + h, before : before + w]


def srad2(sizes, x, c, n, s, w, e):
    below, right = near(c, 1, 0), near(c, 0, 1)
    return x + 0.125 * (c * (n + w) + below * s + right * e)


def srad(sizes, x):
    n, s, w, e = (a - x for a in arms(x))
    g = (n**2 + s**2 + w**2 + e**2) / x**2
    laplace = (n + s + w + e) / x
    q = (g / 2 - laplace**2 / 16) / (1 + laplace / 4) ** 2
    return np.clip(1 / (1 + (q - 0.5) / (0.5 * 1.5)), 0, 1)


def srad_step(sizes, x):
    n, s, w, e = (a - x for a in arms(x))
    return srad2(sizes, x, srad(sizes, x), n, s, w, e)


def acoustic(sizes, now, before, room):
    open_sides = sum(arms(room, mode="constant"))
    wall = open_sides < 6
    value = (
        (2 - open_sides / 3) * now
        + sum(arms(now, mode="constant")) / 3
        - np.where(wall, 0.995, 1) * before
    )
    return room * value / np.where(wall, 1.005, 1)


def nbody(sizes, p, m):
    d = p[None, :, :] - p[:, None, :]
    r = (d**2).sum(2) + 0.01
    return ((m / r**1.5)[:, :, None] * d).sum(1)


def lennard_jones(sizes, p):
    """Over pairs: what one atom feels, the other feels the other way round."""
    force = np.zeros_like(p)
    for i, j in combinations(range(len(p)), 2):
        d = p[i] - p[j]
        r = np.linalg.norm(d)
        if r < 4:
            pull = (1.5 / r**14 - 2 / r**8) * d
            force[i] += pull
            force[j] -= pull
    return force


def black_scholes(sizes, s, x, t, r, v):
    def normal(d):
        k = 1 / (1 + 0.2316419 * np.abs(d))
        a = [1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530, 0]
        tail = np.polyval(a, k) * np.exp(-(d**2) / 2) / np.sqrt(2 * np.pi)
        return np.where(d > 0, 1 - tail, tail)

    spread = v * np.sqrt(t)
    d1 = np.log(s / x) / spread + r * t / spread + spread / 2
    call = s * normal(d1) - x * np.exp(-r * t) * normal(d1 - spread)
    return call, call + x * np.exp(-r * t) - s  # the parity of a put and a call


def mriq(sizes, v, k, phi):
    waves = np.exp(2j * np.pi * v @ k.T) @ phi
    return waves.real, waves.imag


def poisson19(sizes, x):
    weights = np.zeros((3, 3, 3))
    for p in np.ndindex(3, 3, 3):
        weights[p] = {0: 2.666, 1: -0.166, 2: -0.0833, 3: 0}[sum(abs(i - 1) for i in p)]
    return box(x, weights)


def hotspot3d(sizes, x, power):
    d, u, n, s, w, e = arms(x)
    return 0.4 * x + 0.1 * (n + s + w + e) + 0.05 * (u + d) + 0.01 * power + 4


def distances(a, b):
    return ((a[:, None, :] - b[None, :, :]) ** 2).sum(2)


#: For each family its small sizes, and the reference: sizes and arrays to the result or results.
CASES: dict[str, tuple[tuple[int, ...], Callable[..., Array | tuple[Array, ...]]]] = {
    "convolution/strided": ((11, 13, 3, 5, 3, 2), layer(strided)),
    "convolution/dilated": ((11, 13, 3, 5, 3, 2), layer(dilated)),
    "convolution/grouped": ((7, 11, 6, 9, 3, 3), layer(in_groups)),
    "convolution/depthwise": ((7, 11, 5, 3, 2), layer(by_channel)),
    "pool/max": ((11, 13, 3, 3, 2), pooled(np.max, -np.inf)),
    "pool/ceil": ((8, 11, 2, 4, 3), largest_rounded_up),
    "pool/average": ((7, 11, 3, 2, 2), pooled(np.mean, 0)),
    "pool/inside": ((5, 7, 3, 3, 2), lambda z, x: np.nanmean(windows_of(x, *z[3:], np.nan), -1)),
    "pool/l2": ((5, 7, 3, 3, 2), lambda z, x: np.sqrt((windows_of(x, *z[3:], 0) ** 2).sum(-1))),
    "pool/dilated": ((7, 9, 3, 2, 2, 3), largest_apart),
    "pool/argmax": ((5, 7, 3, 3, 2), largest_with_place),
    "pool/global": ((5, 7, 3), lambda sizes, x: x.mean((0, 1))),
    "pool/all": ((5, 7, 2, 3, 2), largest_with_mask("all")),
    "pool/first": ((5, 7, 2, 3, 2), largest_with_mask("first")),
    "pool/shared": ((5, 7, 2, 3, 2), largest_with_mask("shared")),
    "pool/maskback": ((5, 7, 2, 3, 2), put_back),
    "pool/argmaxback": ((5, 7, 2, 3, 2), put_at_places),
    "dot": ((101,), lambda sizes, x, y: x @ y),
    "asum": ((101,), lambda sizes, x: np.abs(x).sum()),
    "scal": ((101,), lambda sizes, alpha, x: alpha * x),
    "matvec": ((7, 13), lambda sizes, a, x: a @ x),
    "gemv": ((7, 13), lambda sizes, alpha, a, x, beta, y: alpha * a @ x + beta * y),
    "atax": ((7, 13), lambda sizes, a, x: a.T @ (a @ x)),
    "gesummv": ((7, 13), lambda sizes, a, b, x: (1.5 * a + 1.2 * b) @ x),
    "matmul": ((7, 11, 5), lambda sizes, a, b: a @ b),
    "gemm": ((7, 11, 5), lambda sizes, alpha, a, b, beta, c: alpha * a @ b + beta * c),
    "batched": ((3, 5, 7, 11), lambda sizes, a, b: np.einsum("bik,bkj->bij", a, b)),
    "transpose": ((7, 11), lambda sizes, a: a.T),
    "stencil/three": (
        (23,),
        lambda sizes, x: np.convolve(np.pad(x, 1, "edge"), [1, 1, 1], "valid"),
    ),
    "stencil/jacobi5": ((7, 11), lambda sizes, x: (x + sum(arms(x))) / 5),
    "stencil/jacobi9": ((7, 11), lambda sizes, x: box(x, np.full((3, 3), 1 / 9))),
    "stencil/gaussian5x5": ((7, 11), lambda sizes, x, k: box(x, k)),
    "stencil/stencil2d": ((7, 11), stencil2d),
    "stencil/separable": ((7, 11, 5), separable),
    "stencil/gradient": (
        (7, 11),
        lambda sizes, x: x + (sum((x - a) ** 2 for a in arms(x)) + 1e-4) ** -0.5,
    ),
    "stencil/hotspot": ((7, 11), hotspot),
    "stencil/srad": ((7, 11), srad),
    "stencil/srad2": ((7, 11), srad2),
    "stencil/sradstep": ((7, 11), srad_step),
    "stencil/heat7": ((5, 7, 3), lambda sizes, x: x + (sum(arms(x)) - 6 * x) / 8),
    "stencil/jacobi7": ((5, 7, 3), lambda sizes, x: (x + sum(arms(x))) / 7),
    "stencil/jacobi13": ((5, 7, 3), lambda sizes, x: (x + sum(arms(x, 2))) / 13),
    "stencil/poisson19": ((5, 7, 3), poisson19),
    "stencil/hotspot3d": ((5, 7, 3), hotspot3d),
    "stencil/acoustic": ((5, 7, 3), acoustic),
    "nbody": ((11,), nbody),
    "md": ((11,), lennard_jones),
    "mriq": ((11, 7), mriq),
    "kmeans": ((23, 5, 3), lambda sizes, p, c: distances(p, c).argmin(1)),
    "nearest": ((7, 13, 3), lambda sizes, q, p: np.sqrt(distances(q, p).min(1))),
    "nn": ((23, 3), lambda sizes, xs, target: np.linalg.norm(xs - target, axis=1)),
    "blackscholes": ((23,), black_scholes),
}

CASES |= {
    f"{name}:nchw": (sizes, channels_first(reference))
    for name, (sizes, reference) in CASES.items()
    if name.startswith("convolution/")
}
