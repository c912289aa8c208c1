"""`mqlab scenarios`: lists the named worlds and their parameters."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from mqlab import scenarios


def main(argv: Sequence[str] | None = None) -> int:
    """Print the list; 0."""
    parser = argparse.ArgumentParser(prog="mqlab scenarios", description=__doc__)
    parser.add_argument("--json", action="store_true", help="as one JSON array")
    parser.add_argument("--faulty", action="store_true", help="only the names of those that bear faults")
    options = parser.parse_args(argv)
    rows = [scenarios.get(name) for name in scenarios.names()]
    if options.faulty:
        print(*(s.name for s in rows if s.faults), sep="\n")
        return 0
    if options.json:
        listed = [
            {
                "name": s.name,
                "summary": s.summary,
                "seconds": s.seconds,
                "parameters": [p._asdict() for p in s.parameters],
            }
            for s in rows
        ]
        print(json.dumps(listed, indent=1))
        return 0
    width = max(len(s.name) for s in rows)
    for s in rows:
        print(f"{s.name:<{width}}  {s.summary}")
        for p in s.parameters:
            among = f" ({', '.join(p.words)})" if p.words else ""
            print(f"{'':<{width}}    {p.name}={p.default!r}{among}")
    return 0
