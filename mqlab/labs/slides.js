// Begins the show, and keeps every slide within its frame: what is too long ends with a line that says how much is left out.
Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, display: "flex", hash: true, transition: "none",
  slideNumber: "c/t", controls: false, plugins: [RevealNotes],
});

function tooTall(slide) {
  const frame = slide.getBoundingClientRect();
  const lowest = frame.bottom - parseFloat(getComputedStyle(slide).paddingBottom) * Reveal.getScale() + 1;
  const seen = [...slide.querySelectorAll("p, li, pre, tr, img, svg, .jp-OutputArea-output > *")].filter((one) => !one.closest("aside"));
  return seen.some((one) => {
    const box = one.getBoundingClientRect();
    return box.height > 0 && box.bottom > lowest;
  }) || [...slide.querySelectorAll(".jp-OutputArea-output")].some((one) => one.scrollHeight > one.clientHeight + 1);
}

function tooWide(slide) {
  return [...slide.querySelectorAll(".jp-OutputArea-output")].some((one) => one.scrollWidth > one.clientWidth + 1);
}

const fits = (slide) => !tooTall(slide) && !tooWide(slide);

// Takes rows or lines off the end until all fits; `kept` of them stay.
function leaveOut(slide, things, what, kept) {
  if (things.length <= kept || !tooTall(slide)) return;
  const home = things[0].closest("table, pre");
  const line = home.nextElementSibling?.className === "left-out" ? home.nextElementSibling : document.createElement("p");
  line.className = "left-out";
  home.after(line);
  let left = Number(line.dataset.left ?? 0);
  for (const thing of things.slice(kept).reverse()) {
    if (!tooTall(slide)) break;
    thing.remove();
    left += 1;
    line.dataset.left = left;
    line.textContent = `and ${left} more ${what}${left === 1 ? "" : "s"}`;
  }
}

function asLines(text) {
  if (!text.querySelector(":scope > .line")) {
    text.replaceChildren(...text.textContent.trimEnd().split("\n").map((words) => {
      const line = document.createElement("span");
      line.className = "line";
      line.textContent = `${words}\n`;
      return line;
    }));
  }
  return [...text.querySelectorAll(".line")];
}

function fit(slide) {
  if (!slide || slide.dataset.fits) return;
  slide.dataset.fits = "yes";
  for (const size of [31, 28, 25]) {
    if (slide.querySelector(".jp-OutputArea-output") || fits(slide)) break;
    slide.style.fontSize = `${size}px`;
  }
  const shown = [...slide.querySelectorAll(".jp-OutputArea-output > :not(img)")];
  const zoomed = (zoom) => shown.forEach((one) => { one.style.zoom = zoom; });
  for (const zoom of [1.7, 1.5, 1.35, 1.2, 1.1, 1]) {
    zoomed(zoom);
    if (fits(slide)) return;
  }
  for (const kept of [8, 1]) {
    for (const table of slide.querySelectorAll(".jp-OutputArea-output table")) leaveOut(slide, [...table.querySelectorAll("tbody tr")], "row", kept);
    for (const text of slide.querySelectorAll(".jp-OutputArea-output pre")) if (tooTall(slide)) leaveOut(slide, asLines(text), "line", kept);
  }
  for (const zoom of [0.9, 0.8]) {
    if (fits(slide)) return;
    zoomed(zoom);
  }
}

Reveal.on("ready", (event) => fit(event.currentSlide));
Reveal.on("slidechanged", (event) => fit(event.currentSlide));
