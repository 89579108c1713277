"""Measuring candidates on the workers of a dask cluster, each of which has a device."""
