"""The embedded form: from Python functions to typed expressions."""
