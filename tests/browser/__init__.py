"""JupyterLab, the labs and the live views in a real browser."""
