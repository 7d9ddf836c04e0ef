"""`python -m quenched`: the command line, where its own command is not on the path."""

import sys

from quenched.cli import main

if __name__ == "__main__":
    sys.exit(main())
