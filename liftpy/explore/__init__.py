"""Campaigns: drawing candidates, measuring them safely, storing and reporting their outcomes."""
