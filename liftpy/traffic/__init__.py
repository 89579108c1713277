"""Models of memory traffic and time: what a kernel moves between the levels of a memory hierarchy.

Nothing here runs a kernel; every figure is modelled.
"""
