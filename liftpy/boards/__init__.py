"""Devices whose machine has no Python: what goes there, and what comes back."""
