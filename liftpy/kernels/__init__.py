"""The chain of kernels that a lowered program is cut into, and what each demands of its launch."""
