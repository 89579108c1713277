"""Views: what an expression reads and where its result goes, as terms over memory."""
