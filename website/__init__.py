"""The web site: `python -m website` writes it into out/site. docs/site.md says what is on it."""
