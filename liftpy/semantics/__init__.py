"""Semantics: evaluation by NumPy, a reference evaluator, and proofs by z3."""
