"""Winograd's minimal filtering algorithms: exact triples, transforms as code, error bounds."""
