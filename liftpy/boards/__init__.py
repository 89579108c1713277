"""Devices on machines without Python: exporting candidates and importing results."""
