"""The judges: NumPy, a reference evaluator, and z3 for rules, primitives and index maps."""
