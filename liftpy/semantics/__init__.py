"""The judges: numbers, a second opinion, and z3 for rules, primitives and index maps."""
