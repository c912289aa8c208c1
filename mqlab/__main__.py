"""`python -m mqlab` is the `mqlab` command."""

import sys

from mqlab.cli import main

sys.exit(main())
