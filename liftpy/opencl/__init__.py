"""OpenCL: code from views, buffers and barriers, and the runtime that builds and runs it."""
