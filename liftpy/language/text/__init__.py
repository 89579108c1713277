"""The text form: from a text to typed expressions."""
