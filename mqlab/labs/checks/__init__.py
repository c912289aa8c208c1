"""The checks of the labs, one module per lab, of the lab's own name. They know nothing of notebooks."""
