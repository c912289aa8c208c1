// The Python of a page: opens the world of a link and plays it, in a thread of its own, so that the page always answers.

let page;

const tell = (message) => postMessage(message);

async function open({ link, base, python, snapshot, answers }) {
  const { bytesOf, wake } = await import(python);
  const awake = await wake(bytesOf(snapshot, (share) => tell({ comes: share })));
  tell({ opens: true });
  const answer = new URLSearchParams(link).get("answer");
  let cells = "";
  if (answer !== null) {
    const told = await fetch(answers);
    if (!told.ok) throw new Error(`the answers are not there (${told.status})`);
    const known = await told.json();
    if (!Object.hasOwn(known, answer)) throw new Error(`there is no answer named ${JSON.stringify(answer.slice(0, 40))}`);
    cells = JSON.stringify(known[answer]);
  }
  page = awake.pyimport("mqlab_page");
  tell({ opened: JSON.parse(page.open_moment(link, base, cells, (message) => tell({ say: JSON.parse(message) }))) });
}

// Of Python's errors the last line says what is wrong.
const words = (error) => String(error.message ?? error).trim().split("\n").at(-1);

onmessage = async ({ data }) => {
  try {
    if (data.open) await open(data.open);
    else page?.take(JSON.stringify(data.take));
  } catch (error) {
    tell(data.open ? { failed: words(error) } : { said: words(error) });
  }
};
