"""Expressions, types and primitives as text."""
