"""`python -m explorer`: the same training and generating without a browser."""

import sys

from explorer.cli import main

if __name__ == "__main__":
    sys.exit(main())
