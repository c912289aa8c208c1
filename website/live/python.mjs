// A Python that does not start: it goes on as it was when the site was built, with all that it needs imported.
//
// JupyterLite's kernel loads this in the place of Pyodide's own module (`loadPyodide`), the page that plays links takes
// its parts.

const here = new URL(".", import.meta.url).href;

// A compressed file, unpacked (unpacked.js stands in front of this); `told` hears which share of it has come.
export async function bytesOf(address, told = () => {}) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} is not there (${answer.status})`);
  const all = Number(answer.headers.get("content-length")) || 0;
  let come = 0;
  const count = new TransformStream({
    transform(chunk, controller) {
      come += chunk.length;
      told(all ? Math.min(1, come / all) : 0);
      controller.enqueue(chunk);
    },
  });
  return new Uint8Array(await new Response(await unpacked(answer.body.pipeThrough(count))).arrayBuffer());
}

// The memory of a Python (or the promise of it), awake. Pyodide fills the memory that it has, and does not make it as
// large as it was; it awaits the promise before it makes any.
export async function wake(memory, options = {}) {
  const { loadPyodide: load } = await import("./pyodide.mjs");
  let wanted = 0;
  const known = Promise.resolve(memory).then((bytes) => {
    wanted = bytes.length;
    return bytes;
  });
  const make = { instantiate: WebAssembly.instantiate, instantiateStreaming: WebAssembly.instantiateStreaming };
  for (const [name, usual] of Object.entries(make)) {
    WebAssembly[name] = async (...given) => {
      const made = await usual.apply(WebAssembly, given);
      const room = (made.instance ?? made).exports?.memory;
      const lacks = room ? wanted - room.buffer.byteLength : 0;
      if (lacks > 0) room.grow(Math.ceil(lacks / 65536));
      return made;
    };
  }
  try {
    return await load({ indexURL: here, ...options, _loadSnapshot: known });
  } finally {
    Object.assign(WebAssembly, make);
  }
}

// Write the files of an archive below a directory.
function unpack(files, archive, directory) {
  const text = (from, length) => {
    const bytes = archive.subarray(from, from + length);
    const end = bytes.indexOf(0);
    return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
  };
  const made = new Set();
  for (let at = 0; at + 512 <= archive.length && archive[at]; ) {
    const [name, before, size] = [text(at, 100), text(at + 345, 155), parseInt(text(at + 124, 12), 8)];
    const path = `${directory}/${before ? `${before}/` : ""}${name}`;
    const folder = path.slice(0, path.lastIndexOf("/"));
    if (!made.has(folder)) files.mkdirTree(folder);
    made.add(folder);
    files.writeFile(path, archive.subarray(at + 512, at + 512 + size));
    at += 512 * (1 + Math.ceil(size / 512));
  }
}

// What JupyterLite's kernel asks for: all packages are there already.
export async function loadPyodide({ packages, indexURL, ...options }) {
  const [memory, site] = ["python.gz", "site.tar.gz"].map((name) => bytesOf(`${here}${name}`));
  const python = await wake(memory, options);
  unpack(python.FS, await site, python.runPython("import sysconfig; sysconfig.get_path('purelib')"));
  python.runPython("import importlib; importlib.invalidate_caches()");
  return python;
}
