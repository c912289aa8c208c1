// What is pressed: keys, the bar with its menus, machines and wires, the time line, and the projector mode.

const KEYS = {
  " ": "play", n: "step_event", ArrowRight: "step_event", p: "back", ArrowLeft: "back",
  s: "step_slice", Home: "start", End: "now", "]": "next_kind", "[": "previous_kind",
};
// In projector mode: what a presenter's remote control sends.
const STORY_KEYS = { PageDown: "next_caption", PageUp: "previous_caption" };
// Keys that open a menu or change how the page looks.
const OPENERS = { b: "menu", m: "more", "?": "keys" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const FIELDS = "input, select, textarea";
const RESIZE_MS = 150;
// px around the stage and its foot.
const AROUND = 10;
// From the middle of a token to its handles, in units of the picture.
const BELOW = 16;

function makeBar(root, { command, part, stage }) {
  let opener; // what opened the menu that is open
  let openedAt; // where the view stood in the window when the open menu was opened
  let wanted; // a machine or wire whose menu shall open when the kernel has answered
  let pointer; // where it was clicked, if it was not a key
  let stop = ""; // which machine or wire is the stage's tab stop
  let item = "play"; // which control is the bar's tab stop
  let said; // what the kernel was told of the size and the mode, if the view is seen at all
  let drag; // the pointer's place on the time line, while it is held down
  let asked = ""; // the number of the newest command when the drag sent its last one

  const isOff = (element) => element.getAttribute("aria-disabled") === "true";

  function send(target) {
    if (isOff(target)) return;
    const { do: what, ...rest } = target.dataset;
    delete rest.key;
    for (const field of target.elements ?? []) if (field.name) rest[field.name] = field.value;
    if (target.matches("select")) rest[target.name || "value"] = target.value;
    const isMachine = stage()?.contains(target) && what.startsWith("choose");
    const again = isMachine && opener === nameOf(target);
    close();
    if (what === "projector") {
      project();
      return;
    }
    if (isMachine && !again) wanted = { menu: "menu", by: nameOf(target), taken: root.dataset.taken };
    if (what === "share") {
      wanted = { menu: "share", by: "bar:share", taken: root.dataset.taken };
      rest.place = root.dataset.place;
    }
    command({ do: what, ...rest });
  }

  // -- menus ---------------------------------------------------------------------------------------------------------

  const pop = (name) => (name === "menu" ? part("menu") : root.querySelector(`[data-pop="${name}"]`));
  const isOpen = (one) => one?.matches(":popover-open");
  const openOne = () => [...root.querySelectorAll("[popover]")].find(isOpen);
  const nameOf = (element) => element.dataset.key ?? element.parentElement?.dataset.key;
  // The machine or wire of a name, on the stage.
  const named = (name) => machines().find((element) => nameOf(element) === name);

  function anchor() {
    return opener?.startsWith("bar:") ? part("bar").querySelector(`[data-key="${opener.slice(4)}"]`) : named(opener);
  }

  function open(name, by) {
    close();
    if (by.startsWith("bar:")) pointer = undefined;
    const menu = pop(name);
    if (!menu || !menu.childElementCount) return;
    opener = by;
    openedAt = root.getBoundingClientRect().top;
    const at = anchor();
    menu.showPopover();
    menu.dataset.at = by.startsWith("bar:") ? "bar" : "stage";
    beside(menu, pointer ?? (at?.checkVisibility() ? at : part("stage")).getBoundingClientRect());
    if (by.startsWith("bar:")) at?.setAttribute("aria-expanded", "true");
    (stopsIn(menu)[0] ?? menu.querySelector('[role="menuitem"]') ?? menu).focus({ preventScroll: true });
  }

  // Below what it belongs to, or above where there is no room, and within the window.
  function beside(menu, box) {
    const { offsetWidth: wide, offsetHeight: high } = menu;
    const below = box.bottom + high + 8 < innerHeight;
    menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - wide - 8))}px`;
    menu.style.top = `${Math.max(8, below ? box.bottom + 4 : box.top - high - 4)}px`;
  }

  function close(back = false) {
    const menu = openOne();
    if (!menu) return false;
    const at = anchor();
    const inside = menu.contains(document.activeElement);
    if (opener?.startsWith("bar:")) at?.setAttribute("aria-expanded", "false");
    opener = undefined;
    menu.hidePopover();
    if (back || inside) focus(at);
    return true;
  }

  // Give the focus to an element, or to the view where that one cannot be seen: it is never lost, for then no key would
  // be heard.
  function focus(element) {
    element?.focus({ preventScroll: true });
    if (!element || document.activeElement !== element) root.focus({ preventScroll: true });
  }

  function toggle(name) {
    const by = `bar:${name}`;
    if (opener === by) close(true);
    else open(name, by);
  }

  // -- one tab stop for each group -----------------------------------------------------------------------------------

  const controls = () => [...part("bar").querySelectorAll(".mq-bar :is(button, select)")];
  const machines = () => [...(stage()?.querySelectorAll(':scope > [data-key][role="button"]') ?? [])];
  const tabs = () => [...part("tabs").querySelectorAll('[role="tab"]')];

  function rove() {
    const all = controls();
    const chosen = all.find((one) => one.dataset.key === item) ?? all[0];
    for (const one of all) stopAt(one, one === chosen);
    const things = machines();
    const current = things.find((one) => nameOf(one) === stop) ?? things[0];
    for (const one of things) stopAt(one, one === current);
    for (const one of tabs()) one.tabIndex = one.getAttribute("aria-selected") === "true" ? 0 : -1;
  }

  // What Tab comes to in a part of the page.
  function stopsIn(whole) {
    const all = whole.querySelectorAll('button, input, select, textarea, summary, a[href], [tabindex="0"]');
    return [...all].filter((one) => one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }) && !one.closest("[inert]"));
  }

  // Tab goes round in a dialog, and in what fills the window.
  function round(whole, now, back) {
    const all = stopsIn(whole);
    const at = all.indexOf(now);
    focus(all[(at + (back ? (at < 0 ? 0 : -1) : 1) + all.length) % all.length]);
  }

  function stopAt(element, stops) {
    const wanted = stops ? "0" : "-1";
    if (element.getAttribute("tabindex") !== wanted) element.setAttribute("tabindex", wanted);
  }

  function along(all, now, key) {
    const at = all.indexOf(now);
    const next = { Home: 0, End: all.length - 1, ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowDown: at + 1 }[key];
    all[(next + all.length) % all.length]?.focus({ preventScroll: true });
  }

  // The nearest machine in the direction of an arrow.
  function towards(now, [dx, dy]) {
    const middle = (one) => {
      const box = one.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    };
    const [x, y] = middle(now);
    let best;
    for (const one of machines()) {
      const [ox, oy] = middle(one);
      const ahead = (ox - x) * dx + (oy - y) * dy;
      const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      if (one !== now && ahead > 1 && !(best?.far <= ahead + 2 * aside)) best = { one, far: ahead + 2 * aside };
    }
    best?.one.focus({ preventScroll: true });
  }

  root.addEventListener("focusin", (event) => {
    const target = event.target;
    if (machines().includes(target)) stop = nameOf(target);
    else if (controls().includes(target)) item = target.dataset.key;
    else return;
    rove();
  });

  // -- keys ----------------------------------------------------------------------------------------------------------

  // Whether the key was used.
  function pressed(event, target) {
    const { key } = event;
    if (key === "Escape") return escaped(target);
    if (target.closest('[role="menu"]') && ["ArrowUp", "ArrowDown", "Home", "End"].includes(key)) {
      along([...target.closest('[role="menu"]').querySelectorAll('[role="menuitem"]')], target, key);
      return true;
    }
    if (target.matches(FIELDS) && !controls().includes(target)) return false;
    if (controls().includes(target) && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) {
      along(controls(), target, key);
      return true;
    }
    if (target.matches("select")) return false;
    if (target.matches('[role="tab"]') && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) {
      along(tabs(), target, key);
      send(document.activeElement);
      return true;
    }
    const does = target.closest("[data-do], [data-menu], summary, button, a");
    if (does && does !== root && (key === "Enter" || key === " ")) {
      if (does.matches("button, summary, a")) return false;
      pointer = undefined;
      send(does);
      return true;
    }
    if (stage()?.contains(target) && ARROWS[key]) {
      towards(target, ARROWS[key]);
      return true;
    }
    if (key === "f") project();
    else if (OPENERS[key]) toggle(OPENERS[key]);
    else if (KEYS[key]) command({ do: KEYS[key] });
    else if (STORY_KEYS[key] && isProjected()) command({ do: STORY_KEYS[key] });
    else return false;
    return true;
  }

  // What is open closes, then the focus goes up to the view, and from there to the notebook.
  function escaped(target) {
    if (close(true)) return true;
    if (isProjected()) {
      project();
      return true;
    }
    if (target === root) {
      // JupyterLab's own command mode begins where the cell has the focus.
      root.closest(".jp-Cell")?.focus({ preventScroll: true });
      if (document.activeElement === root) root.blur();
      return undefined;
    }
    root.focus({ preventScroll: true });
    return true;
  }

  // The notebook has a command for nearly each letter: none of them is meant by who has the focus here.
  root.addEventListener("keydown", (event) => hear(event, event.target));

  function hear(event, target) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab") {
      const menu = openOne();
      const whole = menu?.getAttribute("role") === "dialog" ? menu : isProjected() ? root : undefined;
      if (whole !== menu) close();
      if (whole) {
        event.preventDefault();
        round(whole, document.activeElement, event.shiftKey);
      }
      return;
    }
    const used = pressed(event, target);
    if (used) event.preventDefault();
    if (used !== undefined) event.stopPropagation();
  }

  // What fills the window hears every key, also where what had the focus has gone. A dialog of the notebook comes first.
  const astray = (event) => {
    if (!isProjected() || event.target.closest?.('.mq-viewer, dialog, [role="dialog"], .jp-Dialog')) return;
    root.focus({ preventScroll: true });
    hear(event, root);
  };
  document.addEventListener("keydown", astray, true);

  // -- the pointer ---------------------------------------------------------------------------------------------------

  root.addEventListener("click", (event) => {
    const menu = event.target.closest?.("[data-menu]");
    if (menu && !isOff(menu)) {
      toggle(menu.dataset.menu);
      return;
    }
    const copies = event.target.closest?.("[data-copy]");
    if (copies) {
      copy(copies);
      return;
    }
    const target = event.target.closest?.("[data-do]:not(form, select)");
    if (!target || !root.contains(target)) return;
    // A key on a button is a click without a place.
    pointer = event.detail ? new DOMRect(event.clientX, event.clientY, 0, 0) : undefined;
    send(target);
  });
  root.addEventListener("change", (event) => {
    if (event.target.matches("select[data-do]")) send(event.target);
  });
  root.addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.target);
  });
  const outside = (event) => {
    const menu = openOne();
    if (menu && !menu.contains(event.target) && !event.target.closest?.("[data-menu], [data-do]")) close();
  };
  document.addEventListener("pointerdown", outside, true);
  // What fills the window stays where it is when the page below it scrolls; and a page may tell late of what it scrolled
  // before the menu was opened.
  const scrolled = () => !isProjected() && openOne() && root.getBoundingClientRect().top !== openedAt && close();
  document.addEventListener("scroll", scrolled, true);

  // The text beside the button, to the clipboard; where the browser does not let us, it stands there chosen for Ctrl+C.
  async function copy(button) {
    const row = button.closest(".mq-row");
    const field = row.previousElementSibling.querySelector("textarea");
    const words = row.querySelector("[role=status]");
    field.focus();
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      words.textContent = "Copied.";
    } catch {
      words.textContent = document.execCommand("copy") ? "Copied." : "It is selected: press Ctrl+C.";
    }
  }

  // -- the time line -------------------------------------------------------------------------------------------------

  const line = () => part("timeline").querySelector("[data-from-us]");

  function seek() {
    if (drag === undefined || asked === root.dataset.taken) return;
    const axis = line();
    const box = axis.getBoundingClientRect();
    const [from, to] = [Number(axis.dataset.fromUs), Number(axis.dataset.toUs)];
    const [left, right] = [Number(axis.dataset.left ?? 0), Number(axis.dataset.right ?? 0)];
    const share = (drag - box.left - left) / Math.max(1, box.width - left - right);
    const us = Math.round(from + Math.max(0, Math.min(1, share)) * (to - from));
    drag = undefined;
    asked = root.dataset.taken;
    command({ do: "to_time", ms: us / 1000 });
  }

  part("timeline").addEventListener("pointerdown", (event) => {
    if (!line()?.contains(event.target) || event.target.closest("[data-do]")) return;
    part("timeline").setPointerCapture(event.pointerId);
    line().focus({ preventScroll: true });
    asked = "";
    drag = event.clientX;
    seek();
  });
  part("timeline").addEventListener("pointermove", (event) => {
    if (!part("timeline").hasPointerCapture(event.pointerId)) return;
    drag = event.clientX;
    seek();
  });

  // -- the projector, and the room there is --------------------------------------------------------------------------

  const isProjected = () => root.classList.contains("mq-projector");

  function project() {
    close();
    if (root.classList.toggle("mq-projector")) {
      root.setAttribute("popover", "manual");
      root.showPopover?.();
    } else {
      root.removeAttribute("popover");
    }
    root.focus({ preventScroll: true });
    seen();
  }

  // How large the view is now, and how it is shown: the kernel answers with all of it, drawn for that.
  function seen() {
    const { clientWidth: width, clientHeight: high } = part("stage");
    said = width > 0 ? { width, height: isProjected() ? high : room(), big: isProjected() ? 1 : 0 } : undefined;
    if (said) command({ do: "shown", ...said });
  }

  let measuring;
  function measure() {
    clearTimeout(measuring);
    measuring = setTimeout(() => {
      const { clientWidth: wide, clientHeight: high } = part("stage");
      const height = isProjected() ? high : room();
      if (wide === 0) said = undefined;
      else if (!said || Math.abs(wide - said.width) > 2 || Math.abs(height - said.height) > 2) seen();
      place();
    }, said ? RESIZE_MS : 0);
  }
  // So high may the stage be, that all of it is seen together with its foot.
  function room() {
    const notebook = root.closest(".jp-WindowedPanel-outer")?.clientHeight || innerHeight;
    return Math.max(1, notebook - root.querySelector(".mq-foot").offsetHeight - part("acts").offsetHeight - AROUND);
  }

  window.addEventListener("resize", measure);
  // Only now it is known that somebody sees the view, and how wide it is.
  const watch = new ResizeObserver(measure);
  watch.observe(part("stage"));

  // The handles of a token stand below it: where it rests, even if it is still sliding there.
  function place() {
    const handles = part("handles").querySelectorAll("[data-flight]");
    if (!handles.length) return;
    const frame = part("stage").getBoundingClientRect();
    const onScreen = stage()?.getScreenCTM();
    for (const handle of handles) {
      const token = stage()?.querySelector(`.mq-flight[data-key="${CSS.escape(handle.dataset.flight)}"]`);
      handle.hidden = !token;
      if (!token) continue;
      const [x, y] = placeOf(token);
      const below = new DOMPoint(x, y + BELOW).matrixTransform(onScreen);
      handle.style.left = `${below.x - frame.left}px`;
      handle.style.top = `${below.y - frame.top}px`;
    }
  }

  return {
    seen,
    focus,
    project() {
      if (!isProjected()) project();
    },
    // After the page has changed.
    drawn() {
      rove();
      const tab = root.dataset.tab;
      for (const one of root.querySelectorAll(':scope > [role="tabpanel"]')) one.hidden = one.dataset.part !== tab;
      for (const one of tabs()) one.setAttribute("aria-controls", part(one.dataset.name).id);
      if (opener?.startsWith("bar:")) anchor()?.setAttribute("aria-expanded", "true");
      place();
      if (wanted && wanted.taken !== root.dataset.taken) {
        const { menu, by } = wanted;
        wanted = undefined;
        open(menu, by);
      }
      seek();
    },
    // What stands now where an element stood that has gone.
    instead(gone) {
      return gone.dataset?.key ? root.querySelector(`[data-key="${CSS.escape(gone.dataset.key)}"]`) : undefined;
    },
    close() {
      clearTimeout(measuring);
      watch.disconnect();
      document.removeEventListener("keydown", astray, true);
      window.removeEventListener("resize", measure);
      document.removeEventListener("pointerdown", outside, true);
      document.removeEventListener("scroll", scrolled, true);
    },
  };
}
