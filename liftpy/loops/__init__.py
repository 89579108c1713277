"""The loop IR: typed loops, variables, loads and stores over buffers, and passes over it."""
