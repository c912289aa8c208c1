"""The live views of mqlab: widgets that show a world while it plays."""
