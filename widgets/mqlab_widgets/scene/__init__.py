"""The picture of a world: whole, as SVG text, or in parts for a page on which they move."""
