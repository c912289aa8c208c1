"""Run where the Python of JupyterLite's kernel is kept: imports what the kernel and a lab's first cells need."""

import gc
import importlib
import zipfile

from mqlab import scenarios

KERNEL = ("comm", "jedi", "IPython.core.completer", "IPython.core.interactiveshell", "unittest.mock")
LABS = ("anywidget", "ipywidgets", "mqlab.check", "mqlab.ipython", "mqlab_widgets.stepper")

for name in (*KERNEL, *LABS):
    importlib.import_module(name)
scenarios.get("demo").play(0, seconds=1)
# An open file is none any more when the Python goes on: importlib keeps the archive of the standard library open.
importlib.invalidate_caches()
gc.collect()
assert not [kept for kept in gc.get_objects() if isinstance(kept, zipfile.ZipFile)]
