"""Strategies made of rules. None knows what the program computes: they look at its shape."""
