// node snapshot.mjs PYODIDE FILE MODULES...: keeps the memory of a Python that has imported what a page needs.
//
// A page that begins with it has no Python to start, nothing to install and nothing to import. Wheels are given as
// files, as well as single modules.

import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

process.on("uncaughtException", (error) => {
  console.error(String(error.stack ?? error).split("\n").filter((line) => line.length < 300).join("\n"));
  process.exit(1);
});
const [pyodide, file, ...sources] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: pyodide, _makeSnapshot: true });
for (const source of sources) {
  const bytes = readFileSync(source);
  if (source.endsWith(".whl")) python.unpackArchive(new Uint8Array(bytes).buffer, "wheel");
  else python.FS.writeFile(`/lib/python${python.runPython("import sys; '%d.%d' % sys.version_info[:2]")}/site-packages/${basename(source)}`, bytes);
}
python.runPython(`
import importlib, pkgutil
import mqlab_page, mqlab, mqlab_widgets
from mqlab import scenarios
from mqlab.errors import MissingExtraError
# What is imported late is imported here: a page has no files to import from.
AWAY = ("spark", "grading", "commands", "data_sets", "ipython", "fast", "labs", "__main__", "museum", "java", "serving", "explore", "check", "exercises", "answers")
for package in (mqlab, mqlab_widgets):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name.split(".")[1] not in AWAY:
            try:
                importlib.import_module(found.name)
            except (ImportError, MissingExtraError):
                # A view that needs what a page does not have.
                pass
for name in ("demo",):
    scenarios.get(name).play(0, seconds=1)
import gc
gc.collect()
`);
writeFileSync(file, gzipSync(python.makeMemorySnapshot(), { level: 9 }));
