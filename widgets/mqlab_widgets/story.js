// Plays the story that the kernel tells: beats on a screen clock, each with what moves and what is shown afterwards.

const SVG = "http://www.w3.org/2000/svg";
// So long after its arrival the first beat of a play begins: what comes after it has time to arrive.
const LEAD_MS = 120;
// A late beat moves the clock back, and a little further, so that the next one is not late as well.
const LATE_MS = 40;
const CATCH_UP = 4;
// Who steps wants to see it, and to go on.
const STEP = 2;
// The kernel is never so far ahead, unless the page was held up.
const FAR_AHEAD_MS = 900;
const HURRY = 1.5;
const MOST_STEP_MS = 50;
const GAP_MS = 280;
const GLOW_MS = 1000;
const FLOW_MS = 350;
const MOST_MOVING = 150;
// A flight is seen to move when it was painted in so many places.
const PLACES = 3;

const easeInOut = (f) => (f < 0.5 ? 4 * f * f * f : 1 - (2 - 2 * f) ** 3 / 2);
const easeOut = (f) => 1 - (1 - f) ** 3;

// Corners x1, y1, x2, y2, ... -> the place at a share of the way.
function way(corners) {
  const legs = [];
  let length = 0;
  for (let at = 0; at + 3 < corners.length; at += 2) {
    const [x1, y1, x2, y2] = corners.slice(at, at + 4);
    const leg = Math.hypot(x2 - x1, y2 - y1);
    legs.push({ x1, y1, dx: x2 - x1, dy: y2 - y1, leg, before: length });
    length += leg;
  }
  return (share) => {
    const gone = share * length;
    const found = legs.findLast((one) => one.before <= gone && one.leg > 0);
    if (!found) return [corners[0], corners[1]];
    const part = Math.min(1, (gone - found.before) / found.leg);
    return [found.x1 + found.dx * part, found.y1 + found.dy * part];
  };
}

// The place where an element stands: translate(x y).
function placeOf(element) {
  const numbers = element.getAttribute("transform")?.match(/-?[\d.]+(?:e-?\d+)?/g);
  return numbers?.length >= 2 ? [Number(numbers[0]), Number(numbers[1])] : [0, 0];
}

function drawn(text) {
  const holder = document.createElementNS(SVG, "g");
  holder.innerHTML = text;
  return holder;
}

/* The story of one view.

   `stage()` is the picture (or nothing), `apply(beat)` shows the parts of a beat, `tell(beat)` its words,
   `settled()` is called when all is told and nothing moves any more. With `pace()` the screen clock runs at that rate,
   however much is known ahead: a recording is told as slowly or as fast as its reader wants it. */
function makeStory(root, { stage, apply, tell, settled, pace }) {
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  const moving = new Map(); // id -> what moves in the air
  const landed = new Set(); // ids of flights that are over, though the picture may still have them
  let beats = [];
  let due = []; // beats that have begun and whose parts are shown later
  let clock = 0;
  let base = 0;
  let began; // which play the beats belong to
  let last = 0; // when the last beat that is known begins
  let draining = false;
  let stepping = false; // whether the beats are those of a step
  let told = 0; // how many beats have begun
  let pulses = 0;
  let flown = 0;
  let running = 0;
  let before = 0;
  let held = false; // whether the screen clock stands

  const isStill = () => reduced.matches || document.hidden;
  const isActive = () => beats.length > 0 || due.length > 0 || moving.size > 0;

  function air() {
    const picture = stage();
    if (!picture) return undefined;
    let found = picture.querySelector(':scope > [data-key="page:air"]');
    if (!found) {
      found = document.createElementNS(SVG, "g");
      found.dataset.key = "page:air";
      found.setAttribute("class", "mq-air");
      picture.append(found);
    }
    return found;
  }

  function atRest(id) {
    return stage()?.querySelector(`.mq-flight[data-key="${CSS.escape(id)}"]`);
  }

  // What is in the air is not also shown at rest.
  function hideRests() {
    for (const flight of stage()?.querySelectorAll(".mq-flight[data-key]") ?? []) {
      const id = flight.dataset.key;
      flight.style.visibility = moving.has(id) || landed.has(id) ? "hidden" : "";
    }
  }

  // -- what moves ----------------------------------------------------------------------------------------------------

  function put(one, share) {
    const [x, y] = one.way(share);
    const place = `translate(${x.toFixed(1)} ${y.toFixed(1)})`;
    if (place === one.place) return;
    one.place = place;
    one.element.setAttribute("transform", place);
    one.places += 1;
    if (one.travels && one.places === PLACES) root.dataset.flown = String((flown += 1));
  }

  function add(id, kind, element, corners, ms, more = {}) {
    const one = { id, kind, element, way: way(corners), ms: Math.max(1, ms), gone: 0, places: 0, ease: easeInOut, ...more };
    one.end = corners.slice(-2);
    element.dataset.key = id;
    element.dataset.act = kind;
    moving.get(id)?.element.remove();
    moving.set(id, one);
    air()?.append(element);
    put(one, 0);
    return one;
  }

  const acts = {
    fly(act) {
      landed.delete(act.id);
      add(act.id, "fly", drawn(act.svg), act.path, act.ms, { travels: true });
    },
    // A token that is on its way, or at its end, goes on from where it is.
    land(act) {
      const known = moving.get(act.id);
      const rest = known ? undefined : atRest(act.id);
      const from = known ? placeOf(known.element) : rest ? placeOf(rest) : act.path.slice(0, 2);
      const element = known ? known.element : drawn(rest ? rest.innerHTML : act.svg);
      landed.add(act.id);
      add(act.id, "land", element, [...from, ...act.path.slice(2)], act.ms, { travels: true, ease: easeOut });
    },
    move(act) {
      add(`${act.id}/move`, "move", drawn(act.svg), act.path, act.ms);
    },
    lost(act) {
      const known = moving.get(act.id);
      const rest = known ? undefined : atRest(act.id);
      const at = known ? placeOf(known.element) : rest ? placeOf(rest) : act.path.slice(0, 2);
      const element = known ? known.element : drawn(rest ? rest.innerHTML : act.svg);
      landed.add(act.id);
      element.insertAdjacentHTML("beforeend", '<path class="mq-cross" d="M-9,-9L9,9M9,-9L-9,9"/>');
      add(act.id, "lost", element, [...at, ...at], act.ms, { fades: true });
    },
    flash(act) {
      const ring = '<circle class="mq-flash" r="1"/>';
      add(`${act.id}/flash`, "flash", drawn(act.svg + ring), [...act.path.slice(0, 2), ...act.path.slice(0, 2)], act.ms, {
        grows: true, fades: true, ease: easeOut,
      });
    },
    flow(act) {
      glow(act);
      const svg = act.svg || '<circle class="mq-pulse" r="4"/>';
      for (let n = 0; n < act.n && moving.size < MOST_MOVING; n += 1) {
        pulses += 1;
        const later = (-n * act.ms) / act.n;
        add(`${act.id}/${pulses}`, "flow", drawn(svg), act.path, FLOW_MS, { gone: later, ease: (f) => f, travels: true });
      }
    },
  };

  // The wire along which something flows is lit for a second.
  function glow(act) {
    const id = `${act.path.join(" ")}/glow`;
    const line = drawn(`<polyline class="mq-glow" points="${act.path.join(" ")}"/>`);
    add(id, "glow", line, [0, 0, 0, 0], GLOW_MS, { fades: true });
    air()?.prepend(line);
  }

  function step(one, ms) {
    one.gone += ms;
    const share = Math.min(1, Math.max(0, one.gone / one.ms));
    one.element.style.visibility = one.gone < 0 ? "hidden" : "";
    put(one, one.ease(share));
    if (one.grows) one.element.lastElementChild.setAttribute("r", (4 + 18 * one.ease(share)).toFixed(1));
    if (one.fades) one.element.style.opacity = (1 - share).toFixed(2);
    if (share === 1) end(one);
  }

  function end(one) {
    // Where the picture does not have it at rest yet, what moved stays and waits for it.
    if (one.kind === "fly" && !atRest(one.id) && one.gone < one.ms + GLOW_MS) return;
    one.element.remove();
    moving.delete(one.id);
    hideRests();
  }

  // -- beats ---------------------------------------------------------------------------------------------------------

  function begin(beat, still) {
    told += 1;
    root.dataset.beats = String(told);
    due.push({ ...beat, number: told });
    tell(beat);
    if (still) return;
    for (const act of beat.acts ?? []) if (moving.size < MOST_MOVING) acts[act.act]?.(act);
    hideRests();
  }

  function show(beat) {
    apply(beat);
    if (beat.parts?.flights !== undefined) landed.clear();
    for (const one of [...moving.values()]) if (one.kind === "fly" && one.gone >= one.ms && atRest(one.id)) end(one);
    for (const one of moving.values()) if (one.kind === "land" || one.kind === "lost") landed.add(one.id);
    hideRests();
  }

  function advance(ms) {
    clock += ms;
    while (beats.length && beats[0].at <= clock) begin(beats.shift(), isStill());
    const ready = due.filter((beat) => beat.at + (beat.after ?? 0) <= clock);
    due = due.filter((beat) => !ready.includes(beat));
    for (const beat of ready) show(beat);
    for (const one of [...moving.values()]) step(one, ms);
    const next = beats[0];
    root.querySelector(".mq-gap").textContent = next?.gap && next.at - clock <= GAP_MS ? next.gap : "";
  }

  function rate() {
    if (pace) return pace();
    if (draining) return CATCH_UP;
    if (stepping) return STEP;
    return last - clock > FAR_AHEAD_MS ? HURRY : 1;
  }

  function tick(now) {
    const ms = Math.min(MOST_STEP_MS, now - before);
    before = now;
    advance(ms * rate());
    running = 0;
    if (isActive()) go();
    else rest();
  }

  function go() {
    if (held) return;
    if (!running) running = requestAnimationFrame(tick);
    root.dataset.story = "playing";
  }

  function rest() {
    draining = false;
    root.dataset.story = "still";
    root.querySelector(".mq-gap").textContent = "";
    settled();
  }

  // A page that nobody sees has no animation frames: what has come is shown at once.
  function flush() {
    for (const beat of beats.splice(0)) begin(beat, true);
    for (const beat of due.splice(0)) show(beat);
    for (const one of [...moving.values()]) {
      one.element.remove();
      moving.delete(one.id);
    }
    landed.clear();
    hideRests();
    cancelAnimationFrame(running);
    running = 0;
    rest();
  }

  // A recording waits until it is seen again.
  const onHidden = () => document.hidden && !pace && flush();
  document.addEventListener("visibilitychange", onHidden);

  return {
    get active() {
      return isActive();
    },
    // The place behind the last beat that is known.
    get place() {
      return (beats.at(-1) ?? due.at(-1))?.place;
    },
    // The next beats; those of a step begin at once.
    take(story, play, isStep) {
      const now = performance.now();
      if (!running) {
        if (!held) clock += Math.max(0, now - before);
        before = now;
      }
      if (!story.length) return;
      if (play !== began) {
        began = play;
        draining = false;
        stepping = isStep;
        base = Math.max(clock + (isStep || pace ? 0 : LEAD_MS), beats.length ? last : 0) - story[0].at;
      } else if (story[0].at + base < clock && !beats.length) {
        base += clock - (story[0].at + base) + LATE_MS;
      }
      for (const beat of story) beats.push({ ...beat, at: beat.at + base });
      last = beats.at(-1).at;
      if (document.hidden && !pace) {
        flush();
        return;
      }
      if (isStep) advance(0);
      go();
    },
    flush,
    // Play out what has come, quickly; `settled` is called at its end.
    drain() {
      draining = true;
    },
    // Stop the screen clock, and what moves where it is; or let it go on.
    hold(wanted) {
      if (held === wanted) return;
      held = wanted;
      cancelAnimationFrame(running);
      running = 0;
      before = performance.now();
      if (!held && isActive()) go();
    },
    // Forget what has not been shown, for something else is shown now.
    cut() {
      beats = [];
      due = [];
      flush();
    },
    // A whole picture was drawn.
    redrawn() {
      landed.clear();
      for (const one of moving.values()) if (one.kind === "land" || one.kind === "lost") landed.add(one.id);
      hideRests();
    },
    close() {
      document.removeEventListener("visibilitychange", onHidden);
      cancelAnimationFrame(running);
    },
  };
}
