"""A 3x3 box blur: the same rules and strategies, another program."""

import numpy as np

import liftpy as lp

H, W = 61, 67


@lp.program
def blur(image: lp.array(lp.f32, H, W)):
    windows = image >> lp.pad2d(1, 1, 1, 1, 0) >> lp.slide2d(3, 1)
    return windows >> lp.map2d(lambda w: (w >> lp.join() >> lp.reduce(lp.add, 0)) * (1 / 9))


if __name__ == "__main__":
    x = np.random.default_rng(0).random((H, W), dtype=np.float32)
    kernel = lp.compile(blur)
    error = np.abs(kernel(x) - lp.evaluate(blur, x, dtype=np.float64)).max()
    print(kernel.sources, f"largest error {error:.1e}", kernel.memory, sep="\n")
