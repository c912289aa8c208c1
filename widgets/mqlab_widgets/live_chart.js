// Draws a chart with Bokeh. Until BokehJS is there, and wherever it cannot run, the static picture is shown.

// Version -> a promise of BokehJS: one page loads it once, however many charts it shows.
const libraries = (globalThis.mqlabBokeh ??= new Map());

// Ask the kernel for something, and wait for the answer that has it.
function ask(model, what) {
  return new Promise((resolve) => {
    const take = (answer) => {
      if (answer[what] === undefined) return;
      model.off("msg:custom", take);
      resolve(answer[what]);
    };
    model.on("msg:custom", take);
    model.send({ ask: what });
  });
}

// The library puts itself into `this`; the page's own module system, if it has one, must not catch it.
function load(source) {
  const place = {};
  new Function("define", "exports", "module", "require", source).call(place);
  return place.Bokeh;
}

function library(model) {
  const version = model.get("bokeh_version");
  if (!libraries.has(version)) libraries.set(version, ask(model, "library").then(load));
  return libraries.get(version);
}

async function render({ model, el }) {
  el.innerHTML = model.get("svg");
  try {
    const bokeh = await library(model);
    const drawn = document.createElement("div");
    el.append(drawn);
    await bokeh.embed.embed_item(await ask(model, "figure"), drawn);
    el.querySelector("svg").remove();
    model.set("ready", true);
    model.save_changes();
  } catch (error) {
    console.warn("mqlab: the static picture stays:", error);
  }
}

export default { render };
