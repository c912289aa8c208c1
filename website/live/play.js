// Opens the world of a link in this page: `#scenario=demo&seed=1&at=120`, or `#answer=broker-busy`.

import viewer from "./viewer.js";

const here = new URL(".", import.meta.url);
const site = new URL("..", here);
const page = document.querySelector("#play");
const part = (name) => page.querySelector(`.play-${name}`);
const PATIENCE_MS = 20000;

let end; // ends what is open, or comes

function say(words, kind = "") {
  const line = part("words");
  line.textContent = words;
  line.dataset.kind = kind;
  line.hidden = !words;
}

function note(words) {
  const line = document.createElement("p");
  line.textContent = words;
  part("notes").append(line);
}

function stop(words, kind) {
  end?.();
  page.dataset.state = "stopped";
  say(words, kind);
}

// What the viewer takes for the model of its widget.
function modelOf(frame, send) {
  const takers = new Set();
  return {
    get: (name) => (name === "frame" ? frame : undefined),
    set: (name, value) => (frame = name === "frame" ? value : frame),
    on: (name, taker) => name === "msg:custom" && takers.add(taker),
    off: (name, taker) => takers.delete(taker),
    send,
    take: (message) => takers.forEach((taker) => taker(message)),
  };
}

function open() {
  end?.();
  part("view").replaceChildren();
  part("notes").replaceChildren();
  const link = location.hash.slice(1);
  document.documentElement.classList.toggle("bare", new URLSearchParams(link).get("controls") === "none");
  if (!link) {
    stop("A link to a moment names a world, such as play/#scenario=demo&seed=1&at=120. Choose one below.");
    return;
  }
  page.dataset.state = "comes";
  say("Python comes.");
  part("progress").hidden = false;
  part("progress").removeAttribute("value");
  const worker = new Worker(new URL("worker.js", here), { type: "module" });
  let model;
  let close;
  let slow;
  end = () => {
    end = undefined;
    clearTimeout(slow);
    worker.terminate();
    close?.();
    for (const view of part("view").children) view.inert = true;
    part("progress").hidden = true;
    part("stop").hidden = true;
  };
  const takes = {
    comes(share) {
      if (share) part("progress").value = share;
    },
    opens() {
      part("progress").hidden = true;
      say("The world is played up to its event.");
      page.dataset.state = "opens";
      slow = setTimeout(() => {
        say("This world takes long to come to its event. It can be stopped; the page is not hurt by it.");
        part("stop").hidden = false;
      }, PATIENCE_MS);
    },
    opened({ frame, notes, error }) {
      if (error) {
        stop(error, "error");
        return;
      }
      clearTimeout(slow);
      part("stop").hidden = true;
      say("");
      notes.forEach(note);
      model = modelOf(frame, (content) => worker.postMessage({ take: content }));
      const view = document.createElement("div");
      part("view").replaceChildren(view);
      close = viewer.render({ model, el: view });
      page.dataset.state = "open";
    },
    say: (message) => model?.take(message),
    said: note,
    failed: (words) => stop(words, "error"),
  };
  worker.onerror = (event) =>
    stop(`Python could not be started: ${event.message ?? "this browser does not let a page have one"}`, "error");
  worker.onmessage = ({ data }) => {
    for (const [name, value] of Object.entries(data)) takes[name](value);
  };
  worker.postMessage({
    open: {
      link,
      base: site.href,
      python: new URL("python/python.mjs", site).href,
      snapshot: new URL("python.gz", here).href,
      answers: new URL("answers.json", here).href,
    },
  });
}

part("stop").addEventListener("click", () => stop("Stopped. Reload the page to begin again."));
addEventListener("hashchange", open);
open();
