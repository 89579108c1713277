"""Views: the reads of an expression and the destinations of its result, as terms over memory."""
