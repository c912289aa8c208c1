// The Python of a page: opens the world of a link and plays it, in a thread of its own, so that the page always answers.

let python;
let page;

const tell = (message) => postMessage(message);

async function bytesOf(address, told) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} is not there (${answer.status})`);
  const all = Number(answer.headers.get("content-length")) || 0;
  let come = 0;
  const count = new TransformStream({
    transform(chunk, controller) {
      come += chunk.length;
      told(all ? come / all : 0);
      controller.enqueue(chunk);
    },
  });
  return new Uint8Array(await new Response(answer.body.pipeThrough(count).pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

// A Python as it was when the site was built: its memory is made as large as it was then, before it is filled.
async function wake(pyodide, snapshot) {
  const { loadPyodide } = await import(`${pyodide}pyodide.mjs`);
  const memory = await snapshot;
  const make = { instantiate: WebAssembly.instantiate, instantiateStreaming: WebAssembly.instantiateStreaming };
  for (const [name, usual] of Object.entries(make)) {
    WebAssembly[name] = async (...given) => {
      const made = await usual.apply(WebAssembly, given);
      const room = (made.instance ?? made).exports?.memory;
      const lacks = room ? memory.length - room.buffer.byteLength : 0;
      if (lacks > 0) room.grow(Math.ceil(lacks / 65536));
      return made;
    };
  }
  try {
    return await loadPyodide({ indexURL: pyodide, _loadSnapshot: memory });
  } finally {
    Object.assign(WebAssembly, make);
  }
}

async function open({ link, base, pyodide, snapshot, answers }) {
  const memory = bytesOf(snapshot, (share) => tell({ comes: share }));
  python = await wake(pyodide, memory);
  tell({ opens: true });
  const answer = new URLSearchParams(link).get("answer");
  let cells = "";
  if (answer !== null) {
    const known = await (await fetch(answers)).json();
    if (!Object.hasOwn(known, answer)) throw new Error(`there is no answer named ${JSON.stringify(answer.slice(0, 40))}`);
    cells = JSON.stringify(known[answer]);
  }
  page = python.pyimport("mqlab_page");
  tell({ opened: JSON.parse(page.open_moment(link, base, cells, (message) => tell({ say: JSON.parse(message) }))) });
}

onmessage = async ({ data }) => {
  try {
    if (data.open) await open(data.open);
    else page.take(JSON.stringify(data.take));
  } catch (error) {
    tell({ failed: String(error.message ?? error) });
  }
};
