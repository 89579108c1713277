"""Linear algebra: products and sums of vectors and matrices."""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import (
    Section,
    absolute,
    add,
    array_type,
    const,
    let,
    map,
    mul,
    reduce,
    transpose,
    zip,
)
from liftpy.workloads.family import Family, define


def inner(xs: Expr, ys: Expr) -> Expr:
    """The scalar product of two arrays."""
    return zip(xs, ys) >> map(mul) >> reduce(add, 0)


def times(b: Expr) -> Section:
    """The product of a matrix and `b`, by rows of the one and columns of the other."""
    return map(lambda row: b >> transpose() >> map(lambda column: inner(row, column)))


def dot(name: str, n: int) -> Program:
    """The scalar product of two vectors."""
    return define(name, inner, xs=array_type(F32, n), ys=array_type(F32, n))


def asum(name: str, n: int) -> Program:
    """The sum of absolute values (BLAS)."""
    return define(name, lambda xs: xs >> map(absolute) >> reduce(add, 0), xs=array_type(F32, n))


def scal(name: str, n: int) -> Program:
    """A vector scaled by a number (BLAS)."""
    return define(
        name,
        lambda alpha, xs: xs >> map(lambda x: alpha * x),
        alpha=F32,
        xs=array_type(F32, n),
    )


def matvec(name: str, rows: int, columns: int) -> Program:
    """A matrix times a vector."""
    return define(
        name,
        lambda a, x: a >> map(lambda row: inner(row, x)),
        a=array_type(F32, rows, columns),
        x=array_type(F32, columns),
    )


def gemv(name: str, rows: int, columns: int) -> Program:
    """`alpha * a * x + beta * y` (BLAS)."""

    def combine(alpha: Expr, a: Expr, x: Expr, beta: Expr, y: Expr) -> Expr:
        return zip(a, y) >> map(lambda row, old: alpha * inner(row, x) + beta * old)

    return define(
        name,
        combine,
        alpha=F32,
        a=array_type(F32, rows, columns),
        x=array_type(F32, columns),
        beta=F32,
        y=array_type(F32, rows),
    )


def atax(name: str, rows: int, columns: int) -> Program:
    """The transpose of a matrix times the matrix times a vector (PolyBench)."""

    def twice(a: Expr, x: Expr) -> Expr:
        def back(y: Expr) -> Expr:
            return a >> transpose() >> map(lambda column: inner(column, y))

        return a >> map(lambda row: inner(row, x)) >> let(back)

    return define(name, twice, a=array_type(F32, rows, columns), x=array_type(F32, columns))


def gesummv(name: str, rows: int, columns: int) -> Program:
    """The scaled sum of the products of two matrices with one vector (PolyBench)."""
    return define(
        name,
        lambda a, b, x: zip(a, b) >> map(lambda p, q: inner(p, x) * 1.5 + inner(q, x) * 1.2),
        a=array_type(F32, rows, columns),
        b=array_type(F32, rows, columns),
        x=array_type(F32, columns),
    )


def matmul(rows: int, inner: int, columns: int, name: str = "matmul") -> Program:
    """The product of `a: [rows][inner]` and the constant `b: [inner][columns]`."""
    return define(
        name,
        lambda a, b: a >> times(b),
        a=array_type(F32, rows, inner),
        b=const(F32, inner, columns),
    )


def gemm(name: str, rows: int, inner: int, columns: int) -> Program:
    """`alpha * a * b + beta * c` (BLAS, Parboil)."""

    def combine(alpha: Expr, a: Expr, b: Expr, beta: Expr, c: Expr) -> Expr:
        def update(products: Expr, olds: Expr) -> Expr:
            return zip(products, olds) >> map(lambda new, old: alpha * new + beta * old)

        return zip(a >> times(b), c) >> map(update)

    return define(
        name,
        combine,
        alpha=F32,
        a=array_type(F32, rows, inner),
        b=const(F32, inner, columns),
        beta=F32,
        c=array_type(F32, rows, columns),
    )


def batched(name: str, batch: int, rows: int, inner: int, columns: int) -> Program:
    """The product of each of `batch` pairs of matrices."""
    return define(
        name,
        lambda a, b: zip(a, b) >> map(lambda p, q: p >> times(q)),
        a=array_type(F32, batch, rows, inner),
        b=array_type(F32, batch, inner, columns),
    )


def transposed(name: str, rows: int, columns: int) -> Program:
    """The transpose of a matrix."""
    return define(name, lambda a: a >> transpose(), a=array_type(F32, rows, columns))


FAMILIES = (
    Family("dot", ("N",), ((1 << 20,),), "sum of products, [{N}]", dot, lambda n: 2 * n),
    Family("asum", ("N",), ((1 << 20,),), "sum of absolute values, [{N}]", asum, lambda n: 2 * n),
    Family("scal", ("N",), ((1 << 20,),), "a number times [{N}]", scal, lambda n: n),
    Family(
        "matvec",
        ("M", "N"),
        ((1024, 1024),),
        "[{M}][{N}] times [{N}]",
        matvec,
        lambda m, n: 2 * m * n,
    ),
    Family(
        "gemv",
        ("M", "N"),
        ((1024, 1024),),
        "[{M}][{N}] times [{N}], scaled, and a scaled [{M}] added",
        gemv,
        lambda m, n: 2 * m * n + 3 * m,
    ),
    Family(
        "atax",
        ("M", "N"),
        ((1024, 1024),),
        "[{M}][{N}] transposed times itself times [{N}]",
        atax,
        lambda m, n: 4 * m * n,
    ),
    Family(
        "gesummv",
        ("M", "N"),
        ((1024, 1024),),
        "two [{M}][{N}] times [{N}], scaled and added",
        gesummv,
        lambda m, n: 4 * m * n + 3 * m,
    ),
    Family(
        "matmul",
        ("M", "N", "K"),
        ((256, 256, 256), (509, 521, 523), (1024, 1024, 1024)),
        "[{M}][{N}] times [{N}][{K}]",
        lambda name, m, n, k: matmul(m, n, k, name),
        lambda m, n, k: 2 * m * n * k,
    ),
    Family(
        "gemm",
        ("M", "N", "K"),
        ((256, 256, 256),),
        "[{M}][{N}] times [{N}][{K}], scaled, and a scaled [{M}][{K}] added",
        gemm,
        lambda m, n, k: 2 * m * n * k + 3 * m * k,
    ),
    Family(
        "batched",
        ("B", "M", "N", "K"),
        ((16, 64, 64, 64),),
        "{B} products [{M}][{N}] times [{N}][{K}]",
        batched,
        lambda b, m, n, k: 2 * b * m * n * k,
    ),
    Family(
        "transpose",
        ("M", "N"),
        ((1024, 1024),),
        "[{M}][{N}] transposed",
        transposed,
        lambda m, n: 0,
    ),
)
