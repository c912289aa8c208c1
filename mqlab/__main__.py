"""`python -m mqlab` is the `mqlab` command."""

import sys

from .cli import main

sys.exit(main())
