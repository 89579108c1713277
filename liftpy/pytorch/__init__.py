"""liftpy in PyTorch: programs as functions, plans as modules, and a backend of `torch.compile`."""
