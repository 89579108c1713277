"""A convolution layer in the embedded form, explored on the first OpenCL device.

Pad, slide over both dimensions, and for every window and every kernel a reduction from the bias.
Nothing here says how it is computed.
"""

import liftpy as lp

H, W, C, M, K = 28, 28, 32, 32, 3


@lp.program
def convolution(
    x: lp.array(lp.f32, H, W, C), w: lp.const(lp.f32, M, K, K, C), b: lp.const(lp.f32, M)
):
    windows = x >> lp.pad2d(1, 1, 1, 1, 0) >> lp.slide2d(K, 1)

    def output(window):
        def weigh(kernel, bias):
            products = lp.zip(window >> lp.join() >> lp.join(), kernel >> lp.join() >> lp.join())
            return products >> lp.map(lp.mul) >> lp.reduce(lp.add, bias)

        return lp.zip(w, b) >> lp.map(weigh)

    return windows >> lp.map2d(output)


if __name__ == "__main__":
    campaign = lp.explore(convolution, samples=12, seed=0, db="convolution.db")
    for row in campaign.pareto():
        print(row.time_ns / 1e6, "ms", row.peak, "bytes", row.assignment)
