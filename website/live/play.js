// Opens the world of a link in this page: `#scenario=demo&seed=1&at=120`, or `#answer=broker-busy`.

import viewer from "./viewer.js";

const here = new URL(".", import.meta.url);
const site = new URL("..", here);
const page = document.querySelector("#play");
const PATIENCE_MS = 20000;

let worker;
let slow;

const link = () => location.hash.slice(1);

function say(words, kind = "") {
  const line = page.querySelector(".play-words");
  line.textContent = words;
  line.dataset.kind = kind;
  line.hidden = !words;
}

function stop(words) {
  clearTimeout(slow);
  worker?.terminate();
  worker = undefined;
  page.querySelector(".play-stop").hidden = true;
  page.dataset.state = "stopped";
  say(words, "error");
}

// What the viewer takes for the model of its widget.
function modelOf(frame) {
  const takers = new Set();
  return {
    get: (name) => (name === "frame" ? frame : undefined),
    set: (name, value) => (frame = name === "frame" ? value : frame),
    on: (name, taker) => name === "msg:custom" && takers.add(taker),
    off: (name, taker) => takers.delete(taker),
    send: (content) => worker?.postMessage({ take: content }),
    take: (message) => takers.forEach((taker) => taker(message)),
  };
}

function open() {
  worker?.terminate();
  page.querySelector(".play-view").replaceChildren();
  page.querySelector(".play-notes").replaceChildren();
  page.dataset.state = "comes";
  const asked = link();
  document.documentElement.classList.toggle("bare", new URLSearchParams(asked).get("controls") === "none");
  if (!asked) {
    stop("A link to a moment names a world: play/#scenario=demo&seed=1&at=120. Choose one below.");
    return;
  }
  let model;
  let close;
  worker = new Worker(new URL("worker.js", here), { type: "module" });
  worker.onerror = (event) => stop(`Python could not be started: ${event.message ?? "this browser does not let a page have one"}`);
  worker.onmessage = ({ data }) => {
    if (data.comes !== undefined) say(`Python comes: ${Math.round(data.comes * 100)} %`);
    if (data.opens) {
      say("The world is played up to its event.");
      page.dataset.state = "opens";
      slow = setTimeout(() => {
        say("This world takes long to come to its event. It can be stopped; the page is not hurt by it.");
        page.querySelector(".play-stop").hidden = false;
      }, PATIENCE_MS);
    }
    if (data.failed) stop(data.failed);
    if (data.opened?.error) stop(data.opened.error);
    else if (data.opened) {
      clearTimeout(slow);
      page.querySelector(".play-stop").hidden = true;
      say("");
      for (const note of data.opened.notes) {
        const line = document.createElement("p");
        line.textContent = note;
        page.querySelector(".play-notes").append(line);
      }
      model = modelOf(data.opened.frame);
      const view = document.createElement("div");
      page.querySelector(".play-view").replaceChildren(view);
      close?.();
      close = viewer.render({ model, el: view });
      page.dataset.state = "open";
    }
    if (data.say) model?.take(data.say);
  };
  worker.postMessage({
    open: {
      link: asked,
      base: site.href,
      python: new URL("python/python.mjs", site).href,
      snapshot: new URL("python.gz", here).href,
      answers: new URL("answers.json", here).href,
    },
  });
}

page.querySelector(".play-stop").addEventListener("click", () => stop("Stopped. Reload the page to begin again."));
addEventListener("hashchange", open);
open();
