// Brings a picture that a page shows to what it shall show, with as few changes as possible.

const SLIDE_MS = 260;
const MOST_SLIDES = 120;

// What slid in the picture that is being drawn: [element, from, to].
let slides;

// Make `now` look like `wanted` with as few changes as possible.
function morph(now, wanted) {
  if (now.isEqualNode(wanted)) return;
  if (now.nodeType !== wanted.nodeType || now.nodeName !== wanted.nodeName) {
    now.replaceWith(wanted);
    return;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.nodeValue !== wanted.nodeValue) now.nodeValue = wanted.nodeValue;
    return;
  }
  for (const { name, value } of [...wanted.attributes]) {
    const old = now.getAttribute(name);
    if (old === value) continue;
    if (name === "transform" && slides && old && now.dataset.key) slides.push([now, old, value]);
    now.setAttribute(name, value);
  }
  for (const { name } of [...now.attributes]) {
    if (!wanted.hasAttribute(name) && !(name === "open" && now.nodeName === "DETAILS")) now.removeAttribute(name);
  }
  // A slot says where something is, and not what: that is a part of its own.
  if (!wanted.hasAttribute("data-slot")) morphChildren(now, wanted);
}

// Elements whose key begins with "page:" are the page's own.
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
    if (!gone.dataset?.key?.startsWith("page:")) gone.remove();
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

// The names inside a picture (its parts have none) become this view's own: a page has many pictures, and a name in a hidden one draws nothing.
function ownNames(holder, view) {
  for (const named of holder.querySelectorAll("svg [id]")) named.id = `${view}-${named.id}`;
  for (const name of ["fill", "stroke", "clip-path", "mask", "marker-end", "href"]) {
    for (const user of holder.querySelectorAll(`svg [${name}^="url(#"], svg use[${name}^="#"]`)) {
      user.setAttribute(name, user.getAttribute(name).replace("#", `#${view}-`));
    }
  }
  for (const style of holder.querySelectorAll("svg style")) {
    style.textContent = style.textContent.replaceAll("url(#", `url(#${view}-`).replaceAll(".mq-stage", `#${view} .mq-stage`);
  }
  return holder;
}

function slid(moved) {
  const css = (transform) => {
    const numbers = transform.match(/^translate\((-?[\d.]+)[ ,]+(-?[\d.]+)\)$/);
    return numbers && `translate(${numbers[1]}px, ${numbers[2]}px)`;
  };
  for (const [element, from, to] of moved.slice(0, MOST_SLIDES)) {
    const frames = [css(from), css(to)];
    if (frames[0] && frames[1] && element.isConnected) {
      element.animate(frames.map((transform) => ({ transform })), { duration: SLIDE_MS, easing: "ease-out" });
    }
  }
}

// Draw these parts of a stage, each [key, SVG], and let what has another place slide there.
function showParts(picture, parts, slide) {
  slides = slide ? [] : undefined;
  const wanted = parsed(`<svg>${parts.map(([, html]) => html).join("")}</svg>`).firstChild;
  for (const [key, html] of parts) showPart(picture, key, html ? wanted.firstChild : undefined);
  if (slides) slid(slides);
  slides = undefined;
}

function showPart(picture, key, wanted) {
  const now = picture.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!wanted) {
    now?.remove();
    return;
  }
  wanted.remove();
  if (now) morph(now, wanted);
  else picture.insertBefore(wanted, picture.querySelector(whatLiesAbove(key)));
}

// Wires lie below the cards, and what is on its way above all.
function whatLiesAbove(key) {
  const last = '[data-key="legend"], [data-key="page:air"]';
  const above = key === "flights" ? last : `[data-key="flights"], ${last}`;
  return `:scope > :is(${key.startsWith("wire:") ? '[data-key^="card:"], ' : ""}${above})`;
}
