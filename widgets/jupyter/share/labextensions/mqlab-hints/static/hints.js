// Notes in the notebook which hints of a lab were opened: numbers in the metadata of the cell that holds them
// (`mqlab.hints_opened`), which JupyterLab saves with the notebook. It is loaded as JupyterLab loads every prebuilt
// extension: a container that hands out one module. It shares no code with JupyterLab, so nothing has to be built.
(() => {
  const HINTS = "details";

  function cellOf(app, element) {
    for (const panel of app.shell.widgets("main")) {
      const cells = panel.content && panel.content.widgets;
      if (!cells || !panel.node.contains(element)) continue;
      for (const cell of cells) {
        if (cell.model && cell.node.contains(element)) return cell;
      }
    }
    return null;
  }

  function note(app, details) {
    const cell = cellOf(app, details);
    const ours = cell && cell.model.getMetadata("mqlab");
    if (!ours || !ours.hints_for) return;
    const number = 1 + [...cell.node.querySelectorAll(HINTS)].indexOf(details);
    const opened = new Set(ours.hints_opened || []);
    if (opened.has(number)) return;
    opened.add(number);
    cell.model.setMetadata("mqlab", { ...ours, hints_opened: [...opened].sort() });
  }

  const plugin = {
    id: "mqlab-hints:plugin",
    autoStart: true,
    activate: app => {
      // This event does not rise from the element, so it is caught on its way down.
      document.addEventListener(
        "toggle",
        event => {
          if (event.target.matches && event.target.matches(HINTS) && event.target.open) note(app, event.target);
        },
        true,
      );
    },
  };

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["mqlab-hints"] = {
    init: () => undefined,
    get: () => Promise.resolve(() => ({ __esModule: true, default: plugin })),
  };
})();
