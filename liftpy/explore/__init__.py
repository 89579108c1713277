"""Campaigns: drawing candidates, measuring them safely, keeping and reporting what came out."""
