"""Gradients of programs, as programs: reverse-mode differentiation by adjoints and rules."""
