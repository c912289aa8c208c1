// Shows a world: frames (HTML for each part), and the story between them. What has not changed in the page stays.

const PATIENCE_MS = 4000;
// What the page keeps is shown when the kernel has not drawn anew by then.
const KEPT_MS = 400;
// While a world passes something is heard this often; else the page asks.
const PULSE_MS = 2500;
const ASK_AGAIN_MS = 1000;
// The picture that a page keeps is renewed so often while a story is told.
const KEEP_MS = 2000;
// The parts of the page from top to bottom, each in its own element.
const PARTS = ["acts", "stage", "caption", "said", "bar", "more", "stations", "timeline", "tabs", "step", "next", "machine",
  "boards", "worlds", "text", "menu", "handles"];
// What costs time and is not seen waits until there is nothing else to do.
const IDLE_MS = 500;
const idle = (act) => (window.requestIdleCallback ? requestIdleCallback(act, { timeout: IDLE_MS }) : setTimeout(act));
const TABS = ["step", "next", "machine", "boards", "worlds", "text"];
// What a story tells itself, and what therefore waits for its end.
const TOLD = ["stage", "stations", "handles", "_place", "_us", "_clock", "_past", "_drawn"];

// What can be done something with, where a kernel is there.
const LIVE = ["acts", "stage", "bar", "more", "timeline", "tabs", "menu", "handles", ...TABS];
const LAST = "This is the last picture: no kernel answers for it. Run the notebook from the top to go on.";
const RESTARTED = "The kernel was restarted or shut down: run the notebook from the top.";
const DISCONNECTED = "jupyter-widgets-disconnected";

function render({ model, el }) {
  // Each view runs a module of its own, so a counter would begin anew in each.
  const view = `mq-${Math.random().toString(36).slice(2)}`;
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  el.id = view;
  el.classList.add("mq-viewer");
  el.tabIndex = 0;
  el.setAttribute("role", "group");
  el.setAttribute("aria-label", "mqlab viewer");
  const shown = new Map(); // part -> the HTML that it shows
  const fresh = new Map(); // part of the scene -> number of the beat that showed it last
  let held; // what waits for the end of the story
  let patience;
  let unheard = false;
  let heard = false;
  let newest; // the number of the newest message, if all before it are known
  let asked = -Infinity; // when a whole picture was asked for
  let pulse;
  let kept;
  let keptAt = 0;

  for (const name of PARTS) {
    const part = document.createElement("div");
    part.dataset.part = name;
    if (TABS.includes(name)) {
      part.setAttribute("role", "tabpanel");
      part.id = `${view}-${name}`;
    }
    el.append(part);
  }
  const part = (name) => el.querySelector(`:scope > [data-part="${name}"], :scope > :is(.mq-scene, .mq-foot) > [data-part="${name}"]`);
  const scene = document.createElement("div");
  scene.className = "mq-scene";
  scene.append(part("stage"), part("handles"), parsed('<div class="mq-gap" aria-hidden="true"></div>').firstChild);
  // What is said of the stage and what is done with it stay in sight as long as the stage is.
  const foot = document.createElement("div");
  foot.className = "mq-foot";
  foot.append(part("caption"), part("said"), part("bar"), part("more"));
  el.prepend(part("acts"), scene, foot);
  part("said").setAttribute("role", "status");
  part("said").setAttribute("aria-live", "polite");
  part("menu").setAttribute("popover", "manual");
  const stage = () => part("stage").querySelector("svg.mq-stage");

  const story = makeStory(el, { stage, apply: show, tell, settled });
  const bar = makeBar(el, { command, part, stage });

  // -- what the kernel shows -----------------------------------------------------------------------------------------

  function keepingFocus(change) {
    const focused = el.contains(document.activeElement) ? document.activeElement : undefined;
    change();
    // What moves loses the focus, and what goes takes it along: the keys must stay with the viewer.
    if (focused && focused !== document.activeElement) {
      bar.focus(focused.isConnected ? focused : bar.instead(focused));
    }
    bar.drawn();
  }

  function fill(name, html) {
    if (shown.get(name) === html) return;
    shown.set(name, html);
    slides = name === "stage" && !reduced.matches ? [] : undefined;
    const room = stage()?.getAttribute("viewBox");
    morphChildren(part(name), ownNames(parsed(html), view));
    if (name === "stage") {
      fresh.clear();
      story.redrawn();
      // Nothing slides when all is laid out anew.
      if (slides && room === stage()?.getAttribute("viewBox")) slid(slides);
    }
    slides = undefined;
  }

  function note(name, value) {
    if (el.dataset[name] !== value) el.dataset[name] = value;
  }

  // The time is in the bar, but no part of it: it changes with each beat.
  function tick() {
    const clock = part("bar").querySelector('[data-key="clock"]');
    if (clock && clock.textContent !== (el.dataset.clock ?? "")) clock.textContent = el.dataset.clock ?? "";
  }

  function draw(frame) {
    if (frame._taken !== undefined) {
      clearTimeout(patience);
      if (unheard) frame = { said: model.get("frame").said, ...frame };
      unheard = false;
    }
    keepingFocus(() => {
      for (const [name, html] of Object.entries(frame)) {
        if (name.startsWith("_")) note(name.slice(1), html);
        else if (PARTS.includes(name) && !(name === "said" && unheard)) fill(name, html);
      }
      if (frame.stage !== undefined) note("painted", `${el.dataset.place} ${el.dataset.us}`);
      tick();
    });
  }

  // Each message says what has changed since the one before: who has missed one, or has just come, asks for all of it,
  // and shows nothing of what comes meanwhile.
  function isNext(message) {
    if (message.n <= newest) return false;
    if (!message.whole && message.n !== newest + 1) {
      newest = undefined;
      if (performance.now() - asked > ASK_AGAIN_MS) ask();
      return false;
    }
    return true;
  }

  function ask() {
    asked = performance.now();
    bar.seen();
  }

  function take(message) {
    hear();
    if (isNext(message)) follow(message);
    clearTimeout(pulse);
    if (el.dataset.playing === "true") pulse = setTimeout(ask, PULSE_MS);
    // What was on its way when the kernel went says nothing of a kernel that lives.
    if (!connected) lost("gone", RESTARTED);
  }

  function follow(message) {
    const isNews = newest === undefined;
    newest = message.n;
    if (message.whole) {
      message.frame._drawn = String(message.n);
      appear();
    }
    if (message.whole && isNews) {
      held = undefined;
      story.cut();
      remember(message.frame);
      draw(message.frame);
      return;
    }
    const isStep = Boolean(message.story && message.frame);
    if (isStep && held) {
      // A step after a step: what waits for the end of the last one comes with this one.
      message = { ...message, frame: { ...held, ...message.frame } };
      held = undefined;
      story.flush();
    }
    if (message.story) {
      // What is told now begins with the picture that waits.
      if (held) story.flush();
      story.take(message.story, message.began, isStep);
    }
    if (message.frame) takeFrame(message.frame, isStep);
    if (message.project === view) bar.project();
  }

  function remember(changed) {
    model.set("frame", { ...model.get("frame"), ...changed }, { silent: true });
  }

  function takeFrame(changed, isStep) {
    remember(changed);
    if (!story.active) {
      draw(changed);
      return;
    }
    const place = held?._place ?? story.place;
    const elsewhere = changed._world !== undefined && changed._world !== el.dataset.world;
    const jumps = !isStep && changed._place !== undefined && place !== undefined && changed._place !== String(place);
    if (elsewhere || jumps) {
      held = undefined;
      story.cut();
      draw(changed);
      return;
    }
    const later = Object.fromEntries(Object.entries(changed).filter(([name]) => TOLD.includes(name)));
    draw(Object.fromEntries(Object.entries(changed).filter(([name]) => !TOLD.includes(name))));
    if (Object.keys(later).length) {
      held = { ...held, ...later };
      if (!isStep && ("stage" in later || "_place" in later)) story.drain();
    }
  }

  function release() {
    const frame = held;
    held = undefined;
    if (frame) draw(frame);
  }

  // The story is told to its end.
  function settled() {
    idle(keep);
    release();
  }

  // -- the story -----------------------------------------------------------------------------------------------------

  function tell(beat) {
    if (beat.say && !unheard) {
      shown.delete("said");
      part("said").textContent = beat.say;
    }
    if (beat.place !== undefined) note("place", String(beat.place));
    if (beat.us !== undefined) note("us", String(beat.us));
    if (beat.clock !== undefined) note("clock", beat.clock);
    if (beat.past !== undefined) {
      note("past", beat.past);
      stage()?.classList.toggle("past", beat.past === "true");
    }
    tick();
    if (beat.stations !== undefined) fill("stations", beat.stations);
    if (beat.caption !== undefined) fill("caption", beat.caption);
  }

  function show(beat) {
    // The words of a beat come before its picture.
    if (beat.place !== undefined) note("painted", `${beat.place} ${beat.us}`);
    const parts = Object.entries(beat.parts ?? {}).filter(([key]) => !(fresh.get(key) > beat.number));
    if (!parts.length || !stage()) return;
    shown.delete("stage");
    keepingFocus(() => {
      for (const [key] of parts) fresh.set(key, beat.number);
      showParts(stage(), parts, !reduced.matches && !document.hidden);
    });
    if (performance.now() - keptAt > KEEP_MS) keep();
  }

  // What the page would show without a kernel is what was shown last.
  function keep() {
    keptAt = performance.now();
    const picture = stage();
    if (!picture || shown.has("stage")) return;
    const copy = picture.cloneNode(true);
    copy.querySelector('[data-key="page:air"]')?.remove();
    for (const one of copy.querySelectorAll(".mq-flight")) one.removeAttribute("style");
    const [_place, _us] = el.dataset.painted.split(" ");
    const { clock: _clock, past: _past } = el.dataset;
    remember({ _place, _us, _clock, _past, stage: copy.outerHTML.replaceAll(`#${view} `, "").replaceAll(`${view}-`, "") });
  }

  // -- what the page says --------------------------------------------------------------------------------------------

  // Frames may go on coming from a cell that plays; `taken` says whether commands are heard.
  function complain(words) {
    unheard = true;
    shown.delete("said");
    part("said").textContent = words;
  }

  function wait() {
    clearTimeout(patience);
    patience = setTimeout(() => {
      if (heard) {
        el.dataset.kernel = "silent";
        complain("The kernel does not answer. If a cell is running, wait for it; if the kernel was restarted, run the notebook from the top.");
      } else {
        lost("none", LAST);
      }
    }, PATIENCE_MS);
  }

  // No kernel knows this view: what is shown stays as it is, and nothing can be done to it.
  function lost(how, words) {
    clearTimeout(patience);
    clearTimeout(pulse);
    appear();
    story.flush();
    keepingFocus(() => {
      note("kernel", how);
      note("playing", "false");
      for (const name of LIVE) part(name).inert = true;
      fill("caption", "");
    });
    complain(words);
  }

  function hear() {
    heard = true;
    if (el.dataset.kernel === "answers") return;
    note("kernel", "answers");
    for (const name of LIVE) part(name).inert = false;
  }

  // The picture that was kept is seen only where none comes that was drawn anew.
  function appear() {
    clearTimeout(kept);
    el.classList.remove("mq-waiting");
  }

  function command(content) {
    if (say(content) && el.dataset.kernel !== "gone") wait();
  }

  // Whether it could be sent.
  function say(content) {
    try {
      model.send({ ...content, view });
      return true;
    } catch {
      if (heard) lost("gone", RESTARTED);
      else lost("none", LAST);
      return false;
    }
  }

  function leave() {
    try {
      model.send({ do: "hidden", view });
    } catch {
      // Nobody is left to be told.
    }
  }

  // JupyterLab marks the views whose kernel was restarted.
  let connected = true;
  const watch = new MutationObserver(() => {
    if (connected !== el.classList.contains(DISCONNECTED)) return;
    connected = !connected;
    if (connected) ask();
    else if (heard) lost("gone", RESTARTED);
  });
  watch.observe(el, { attributeFilter: ["class"] });
  const onVisible = () => !document.hidden && ask();
  document.addEventListener("visibilitychange", onVisible);
  // Out of the browser's memory of pages.
  const onBack = (event) => event.persisted && ask();
  addEventListener("pageshow", onBack);
  addEventListener("pagehide", leave);

  // Who turns to a view is told at once if its kernel has gone.
  let turned = performance.now();
  const onTurn = () => {
    if (performance.now() - turned < ASK_AGAIN_MS || el.dataset.kernel !== "answers") return;
    turned = performance.now();
    say({ do: "here" });
  };
  el.addEventListener("pointerenter", onTurn);
  el.addEventListener("focusin", onTurn);

  el.classList.add("mq-waiting");
  draw(model.get("frame"));
  kept = setTimeout(appear, KEPT_MS);
  model.on("msg:custom", take);
  return () => {
    for (const timer of [patience, pulse, kept]) clearTimeout(timer);
    watch.disconnect();
    document.removeEventListener("visibilitychange", onVisible);
    removeEventListener("pageshow", onBack);
    removeEventListener("pagehide", leave);
    story.close();
    bar.close();
    model.off("msg:custom", take);
    leave();
  };
}

export default { render };
