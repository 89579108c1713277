"""Strategies made of rules. They depend on a program's shape only, not on what it computes."""
