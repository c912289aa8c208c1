"""What is typed behind `mqlab`: a module for each command, and the table of them in cli.py."""
