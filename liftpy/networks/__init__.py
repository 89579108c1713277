"""Whole networks: ONNX models as graphs of programs."""
