"""The embedded form: from Python functions to typed expressions.

Importing any of its modules defines Python's operators on expressions.
"""

from liftpy.language.embedded import indexing, operators

__all__ = ["indexing", "operators"]
