"""The language as it is written: its text form and its embedded form."""
