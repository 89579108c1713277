"""The places in a text, or in the Python code of a user, that messages point at."""
