// node snapshot.mjs PYODIDE FILE SCRIPT SOURCES...: keeps the memory of a Python that has run SCRIPT.
//
// Who begins with it has no Python to start, nothing to install and nothing to import. Sources are wheels and single
// modules.

import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

// A line of Pyodide's is a million letters long: what goes wrong is told without it.
process.on("uncaughtException", (error) => {
  console.error(String(error.stack ?? error).split("\n").filter((line) => line.length < 300).join("\n"));
  process.exit(1);
});

const [pyodide, file, script, ...sources] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: pyodide, _makeSnapshot: true });
const site = python.runPython("import sysconfig; sysconfig.get_path('purelib')");
for (const source of sources) {
  const bytes = readFileSync(source);
  if (source.endsWith(".whl")) python.unpackArchive(new Uint8Array(bytes).buffer, "wheel", { extractDir: site });
  else python.FS.writeFile(`${site}/${basename(source)}`, bytes);
}
python.runPython(readFileSync(script, "utf-8"));
writeFileSync(file, gzipSync(python.makeMemorySnapshot(), { level: 9 }));
