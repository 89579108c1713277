"""Strategies made of rules. None of them knows what the program computes: they look at its shape."""
