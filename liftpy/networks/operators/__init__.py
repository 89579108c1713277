"""The operators of ONNX that have programs: a module for each family, a builder for each operator.

A builder takes a node with its attributes decoded, and returns its program as a function of its
inputs. It declines what the language does not express, with the reason.
"""

from __future__ import annotations

from liftpy.networks.operators import (
    convolutions,
    elementwise,
    folds,
    matrices,
    normalization,
    quantised,
    rearranging,
    resizing,
    transposed,
)
from liftpy.networks.operators.node import REGISTRY, Declined, Entry, Node, Operand

__all__ = [
    "REGISTRY",
    "Declined",
    "Entry",
    "Node",
    "Operand",
    "convolutions",
    "elementwise",
    "folds",
    "matrices",
    "normalization",
    "quantised",
    "rearranging",
    "resizing",
    "transposed",
]
