"""Naturals, types, conditions and expressions, and what an expression means."""
