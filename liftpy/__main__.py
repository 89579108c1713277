"""`python -m liftpy` is the command `liftpy`."""

from liftpy.cli import main

if __name__ == "__main__":
    main()
