"""`python -m mqlab` is the `mqlab` command."""

import sys

from mqlab.commands.cli import main

sys.exit(main())
