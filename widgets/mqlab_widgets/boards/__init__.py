"""The boards: views of a world, one file each."""
