"""Campaigns: storing them in databases, resuming and replaying them."""
