// Plays recordings of a stage (mqlab_widgets/recording.py) where there is no Python.

// On narrower pages the narrow recording is shown (recorded.css has the same number).
const WIDE = "(min-width: 701px)";
const NO_MOTION = "(prefers-reduced-motion: reduce)";
const SHARE_ON_SCREEN = 0.3;

const shownTime = (ms) => `${Math.floor(ms / 60000)}:${String(Math.floor((ms % 60000) / 1000)).padStart(2, "0")}`;

// The lines of a compressed file, each as soon as it has come.
async function* linesOf(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  const reader = (await unpacked(answer.body)).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    if (lines.length) yield lines.map((line) => JSON.parse(line));
  }
}

function makeRecorded(root) {
  const view = `mq-${Math.random().toString(36).slice(2)}`;
  root.id = view;
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const stage = () => part("stage").querySelector("svg.mq-stage");
  const control = (name) => root.querySelector(`[data-control="${name}"]`);
  const beats = [];
  let first; // the line that all beats follow
  let ended = false; // whether all of the recording has come
  let told = -1; // the beat that began last
  let plays = 0;
  let playing = false;
  let offScreen = false;
  let followed = ""; // the message whose trail is shown
  let pace = 1;
  let dragging = false;
  let jumping = false;
  const latest = new Map(); // part of the stage -> the beat that drew it last

  const story = makeStory(root, { stage, apply, tell, settled, pace: () => pace });

  // -- what is shown -------------------------------------------------------------------------------------------------

  function fill(name, html) {
    morphChildren(part(name), ownNames(parsed(html), view));
    reach();
  }

  // What does something here is reached by keys, and what does nothing is no button.
  function reach() {
    for (const one of root.querySelectorAll('[data-part="stage"] [data-do]:not([data-do="follow"])')) {
      for (const name of ["role", "tabindex", "aria-pressed"]) one.removeAttribute(name);
    }
    for (const one of root.querySelectorAll('[data-do="follow"], [data-do="to_time"]')) {
      one.setAttribute("tabindex", "0");
      if (one.localName !== "button") one.setAttribute("role", "button");
    }
  }

  function apply(beat) {
    const parts = Object.entries(beat.parts ?? {}).filter(([key]) => !(latest.get(key) > beat.index));
    for (const [key] of parts) latest.set(key, beat.index);
    if (parts.length) {
      showParts(stage(), parts, !matchMedia(NO_MOTION).matches && !document.hidden);
      reach();
    }
    light();
  }

  function tell(beat) {
    told = beat.index;
    words(beat);
    where();
  }

  function words(beat) {
    if (beat.say !== undefined) part("said").textContent = beat.say;
    if (beat.caption !== undefined) fill("caption", beat.caption);
    if (beat.clock !== undefined) control("clock").textContent = beat.clock;
    root.dataset.place = String(beat.place);
    if (followed) trail();
    else if (beat.stations !== undefined) fill("stations", beat.stations);
  }

  // What a reader sees who comes to a beat by another way than through all before it.
  function jump(to) {
    if (!first) return;
    told = to;
    jumping = true;
    story.cut();
    jumping = false;
    latest.clear();
    const seen = { ...first, say: "" };
    const parts = {};
    for (const beat of beats.slice(0, to + 1)) {
      Object.assign(parts, beat.parts);
      for (const name of ["say", "caption", "stations", "clock", "place"]) if (beat[name] !== undefined) seen[name] = beat[name];
    }
    fill("stage", first.stage);
    showParts(stage(), Object.entries(parts), false);
    reach();
    story.redrawn();
    words(seen);
    light();
    where();
    plays += 1;
    if (to + 1 < beats.length) story.take(beats.slice(to + 1), plays, false);
    else settled();
  }

  function where() {
    const at = told < 0 ? 0 : beats[told].at;
    const scrub = control("scrub");
    scrub.max = String(Math.max(0, beats.length - 1));
    if (!dragging) scrub.value = String(Math.max(0, told));
    scrub.setAttribute("aria-valuetext", `${shownTime(at)}, ${part("said").textContent}`);
    control("time").textContent = `${shownTime(at)} / ${shownTime(beats.at(-1)?.at ?? 0)}`;
    const link = `#${first.link}&at=${root.dataset.place}&v=${first.mqlab}`;
    for (const anchor of root.querySelectorAll("a[data-moment]")) anchor.href = anchor.href.split("#")[0] + link;
  }

  // -- a message that was clicked ------------------------------------------------------------------------------------

  function trail() {
    const known = beats.slice(0, told + 1).findLast((beat) => beat.trails?.[followed]);
    fill("stations", known ? known.trails[followed] : '<span class="mq-faint">This message has not been sent yet.</span>');
  }

  function light() {
    for (const lit of root.querySelectorAll(".lit")) lit.classList.remove("lit");
    if (!followed) return;
    for (const token of stage().querySelectorAll(`[data-message="${CSS.escape(followed)}"]`)) token.classList.add("lit");
  }

  function follow(message) {
    followed = followed === message ? "" : message;
    if (followed) trail();
    else fill("stations", beats.slice(0, told + 1).findLast((beat) => beat.stations !== undefined)?.stations ?? first.stations);
    light();
  }

  // -- play ----------------------------------------------------------------------------------------------------------

  function play(wanted) {
    if (wanted && ended && told >= beats.length - 1 && !story.active) jump(-1);
    playing = wanted;
    story.hold(!playing || offScreen);
    control("play").textContent = playing ? "Pause" : "Play";
    root.dataset.playing = String(playing);
  }

  function settled() {
    if (!jumping && ended && told >= beats.length - 1) play(false);
  }

  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-control='play']");
    if (button) play(!playing);
    const station = event.target.closest("[data-do='to_time']");
    if (station) jump(beats.findLastIndex((beat) => beat.us <= Number(station.dataset.ms) * 1000));
    const message = event.target.closest("[data-message]");
    if (message && first) follow(message.dataset.message || followed);
  });
  root.addEventListener("keydown", (event) => {
    const target = event.target.closest('[data-do="follow"]:not(button), [data-do="to_time"]');
    if (!target || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  control("pace").addEventListener("change", (event) => (pace = Number(event.target.value)));
  control("scrub").addEventListener("input", (event) => {
    dragging = true;
    jump(Number(event.target.value));
  });
  control("scrub").addEventListener("change", () => (dragging = false));

  // -- the recording comes -------------------------------------------------------------------------------------------

  function take(lines) {
    if (!first) {
      first = lines.shift();
      fill("stage", first.stage);
      words(first);
      root.classList.add("ready");
      // Nothing moves for who has asked the system for less motion.
      play(playing || (root.dataset.autoplay !== undefined && !matchMedia(NO_MOTION).matches));
    }
    const news = lines.map((beat, n) => ({ ...beat, index: beats.length + n }));
    beats.push(...news);
    if (news.length) story.take(news, plays, false);
    where();
  }

  async function load() {
    const size = matchMedia(WIDE).matches ? "wide" : "narrow";
    try {
      for await (const lines of linesOf(`${root.dataset.recording}-${size}.gz`)) take(lines);
    } catch (error) {
      if (first) {
        root.querySelector("figcaption").append(` The rest of it could not be loaded (${error.message}).`);
      } else {
        part("said").textContent = location.protocol === "file:"
          ? "From a file the browser does not load what moves here. From a web server it does."
          : `What moves here could not be loaded (${error.message}).`;
      }
    }
    ended = true;
    settled();
  }

  // What nobody sees waits.
  new IntersectionObserver((entries) => {
    offScreen = entries.at(-1).intersectionRatio < SHARE_ON_SCREEN;
    story.hold(!playing || offScreen);
  }, { threshold: [0, SHARE_ON_SCREEN] }).observe(part("stage"));

  story.hold(true);
  return load();
}

// Those that are near are loaded, the others when they come near.
const recordings = [...document.querySelectorAll("[data-recording]")];
const near = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((one) => one.isIntersecting)) {
    near.unobserve(entry.target);
    makeRecorded(entry.target);
  }
}, { rootMargin: "400px" });
for (const root of recordings) near.observe(root);
