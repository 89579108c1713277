"""The conditions of a space: collected from a skeleton, solved, drawn from and explained."""
