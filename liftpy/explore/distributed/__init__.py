"""Measuring candidates on the workers of a cluster, each of which has a device."""
