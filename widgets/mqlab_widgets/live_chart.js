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

// Give the sources of a figure their new columns; a series that was not there before gets its name in the legend.
function fill(figure, frame) {
  for (const [source, { name, data }] of Object.entries(frame)) {
    figure.get_model_by_name(source).data = data;
    const item = figure.get_model_by_name(`${source} name`);
    if (item && !item.visible && data.x.length) {
      // With a `type`, as a figure's JSON has it, a label is neither a value nor a field to Bokeh, and gives no text.
      item.label = { value: name };
      item.visible = true;
    }
  }
}

async function draw(model, el) {
  const bokeh = await library(model);
  const drawn = document.createElement("div");
  el.append(drawn);
  const before = new Set(bokeh.documents);
  await bokeh.embed.embed_item(await ask(model, "figure"), drawn);
  el.querySelector("svg").remove();
  return bokeh.documents.find((one) => !before.has(one));
}

function render({ model, el }) {
  el.innerHTML = model.get("svg");
  let figure;
  const update = () => figure && fill(figure, model.get("frame"));
  draw(model, el).then(
    (made) => {
      figure = made;
      update();
      model.set("ready", true);
      model.save_changes();
    },
    (error) => console.warn("mqlab: the static picture stays:", error),
  );
  model.on("change:frame", update);
  model.send({ do: "shown" });
  return () => {
    model.off("change:frame", update);
    model.send({ do: "hidden" });
    figure?.clear();
  };
}

export default { render };
