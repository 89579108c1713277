"""The chain of kernels that a lowered program is cut into, and what each requires of its launch."""
