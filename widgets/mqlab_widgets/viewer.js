// Shows the frames of a world. A frame is HTML per part; what has not changed in the page stays, with its focus.

const KEYS = {
  " ": "play", n: "step_event", ArrowRight: "step_event", p: "back", ArrowLeft: "back",
  s: "step_slice", Home: "start", End: "now", "]": "next_kind", "[": "previous_kind",
};

const PATIENCE_MS = 4000;

// Make `now` look like `wanted` with as few changes as possible.
function morph(now, wanted) {
  if (now.nodeType !== wanted.nodeType || now.nodeName !== wanted.nodeName) {
    now.replaceWith(wanted);
    return;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.nodeValue !== wanted.nodeValue) now.nodeValue = wanted.nodeValue;
    return;
  }
  for (const { name, value } of [...wanted.attributes]) {
    if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  for (const { name } of [...now.attributes]) {
    if (!wanted.hasAttribute(name) && !(name === "open" && now.nodeName === "DETAILS")) now.removeAttribute(name);
  }
  morphChildren(now, wanted);
}

function morphChildren(now, wanted) {
  const keyed = new Map();
  for (const child of now.children) if (child.dataset?.key) keyed.set(child.dataset.key, child);
  let place = now.firstChild;
  for (const next of [...wanted.childNodes]) {
    const same = next.dataset?.key ? keyed.get(next.dataset.key) : undefined;
    if (same && same !== place) now.insertBefore(same, place);
    const old = same ?? (place?.dataset?.key ? undefined : place);
    if (old) {
      place = old.nextSibling;
      morph(old, next);
    } else {
      now.insertBefore(next, place);
    }
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

// HTML text -> an element that holds it.
function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const holder = document.createElement("div");
  holder.append(template.content);
  return holder;
}

// The names inside a picture become this view's own: a page has many pictures, and a name in a hidden one draws nothing.
function ownNames(holder, view) {
  for (const named of holder.querySelectorAll("svg [id]")) named.id = `${view}-${named.id}`;
  for (const user of holder.querySelectorAll('svg [fill^="url(#"]')) {
    user.setAttribute("fill", user.getAttribute("fill").replace("url(#", `url(#${view}-`));
  }
  return holder;
}

function render({ model, el }) {
  // Each view runs a module of its own, so a counter would begin anew in each.
  const view = `mq-${Math.random().toString(36).slice(2)}`;
  el.classList.add("mq-viewer");
  el.tabIndex = 0;
  el.setAttribute("role", "group");
  el.setAttribute("aria-label", "mqlab viewer");
  const shown = new Map();
  let patience;
  let unheard = false;

  function part(name) {
    let found = el.querySelector(`:scope > [data-part="${name}"]`);
    if (!found) {
      found = document.createElement("div");
      found.dataset.part = name;
      if (name === "said") {
        found.setAttribute("role", "status");
        found.setAttribute("aria-live", "polite");
      }
      el.append(found);
    }
    return found;
  }

  function draw() {
    const frame = model.get("frame");
    const focused = el.contains(document.activeElement) ? document.activeElement : undefined;
    if (frame._taken !== el.dataset.taken) {
      clearTimeout(patience);
      unheard = false;
    }
    for (const [name, html] of Object.entries(frame)) {
      if (name === "said" && unheard) continue;
      if (name.startsWith("_")) {
        el.dataset[name.slice(1)] = html;
        continue;
      }
      if (shown.get(name) === html) continue;
      shown.set(name, html);
      morphChildren(part(name), ownNames(parsed(html), view));
    }
    el.dataset.dropped = model.get("dropped");
    nameSliders();
    // What moves loses the focus, and what goes takes it along: the keys must stay with the viewer.
    if (focused && focused !== document.activeElement) (focused.isConnected ? focused : el).focus({ preventScroll: true });
  }

  // Frames may go on coming from a cell that plays; `taken` says whether commands are heard.
  function tell(words) {
    unheard = true;
    shown.delete("said");
    part("said").textContent = words;
  }

  function wait() {
    clearTimeout(patience);
    patience = setTimeout(() => tell(
      "The kernel does not answer. If a cell is running, wait for it; after a restart, run this cell again.",
    ), PATIENCE_MS);
  }

  function command(content) {
    try {
      model.send(content);
      wait();
    } catch {
      tell("This view has lost its kernel, which was restarted or shut down: run this cell again.");
    }
  }

  // The controls around the stage are widgets of their own, and who presses them waits as well.
  function pressed(event) {
    if (event.target.closest?.("button.jupyter-button") && el.closest(".widget-vbox")?.contains(event.target)) wait();
  }

  // A slider of ipywidgets has its name beside it only.
  function nameSliders() {
    for (const handle of el.closest(".widget-vbox")?.querySelectorAll("[role=slider]:not([aria-label])") ?? []) {
      handle.setAttribute("aria-label", handle.closest(".jupyter-widgets")?.querySelector("label")?.textContent || "event");
    }
  }

  function send(target) {
    const { do: what, ...rest } = target.dataset;
    delete rest.key;
    command({ do: what, ...rest });
  }

  el.addEventListener("click", (event) => {
    const target = event.target.closest?.("[data-do]");
    if (target && el.contains(target)) send(target);
  });
  el.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target.closest?.("[data-do]");
    if (target && (event.key === "Enter" || event.key === " ")) {
      send(target);
    } else if (KEYS[event.key] && !event.target.matches("input, select, textarea")) {
      command({ do: KEYS[event.key] });
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });

  model.on("change:frame", draw);
  document.addEventListener("click", pressed, true);
  draw();
  model.send({ do: "shown" });
  return () => {
    document.removeEventListener("click", pressed, true);
    clearTimeout(patience);
    try {
      model.send({ do: "hidden" });
    } catch {
      // Nobody is left to be told.
    }
    model.off("change:frame", draw);
  };
}

export default { render };
