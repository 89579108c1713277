"""Campaigns: their databases, resuming and replaying."""
