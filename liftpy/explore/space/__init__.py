"""The space of a program: candidates, the sizes that satisfy conditions, and drawing."""
