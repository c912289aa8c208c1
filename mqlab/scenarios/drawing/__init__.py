"""Drawn worlds: what is in a world, and what it does, as lines of text that a seed draws and anybody may write.

`settings` says which values are legal, `parts` reads and writes the lines, `draw` draws them, `build` makes the world.
"""

from mqlab.scenarios.drawing.draw import draw_world
from mqlab.scenarios.drawing.parts import Part, shorter_worlds, world_from_text, world_text

__all__ = ["Part", "draw_world", "shorter_worlds", "world_from_text", "world_text"]
