// Which panels of the order book's view are shown, where, and how large: by what the user chose. The page's style has all other sizes.

import { byId } from "../base/dom.ts";
import { COLUMNS, hiddenPanels, layout, PANELS, panelSizes } from "../base/settings.ts";
import type { Signal } from "../base/signal.ts";
import { type Areas, gridsOf } from "../state/panels.ts";
import { bordersOf, tracksOf } from "../state/panel-sizes.ts";
import { Separators } from "./separators.ts";

export function panelsView(collects: Signal<boolean>): void {
  const host = byId("panels");
  const separators = new Separators(host);
  const set = (name: string, value: string | null): void => {
    if (value === null) host.style.removeProperty(name);
    else host.style.setProperty(name, value);
  };
  const draw = (): void => {
    const shown = new Set(PANELS.filter((panel) => !hiddenPanels.value.includes(panel)));
    // An auction's price is nowhere else, so it is shown while there is one.
    if (collects.value) shown.add("depth");
    for (const panel of PANELS) byId(panel).hidden = !shown.has(panel);
    const grids = gridsOf(layout.value, shown, collects.value);
    for (const columns of COLUMNS) {
      const borders = bordersOf(columns, grids, collects.value);
      const tracks = tracksOf(layout.value, columns, grids, borders, panelSizes.value);
      set(`--areas-${columns}`, quoted(grids[columns]));
      set(`--columns-${columns}`, tracks.columns);
      set(`--rows-${columns}`, tracks.rows ?? (columns === "wide" ? grids.wideRows.join(" ") : null));
      separators.show(columns, borders);
    }
    document.documentElement.dataset["layout"] = layout.value;
  };
  layout.watch(draw);
  hiddenPanels.watch(draw);
  panelSizes.watch(draw);
  collects.watch(draw);
  draw();
}

function quoted(areas: Areas): string {
  return areas.map((row) => `"${row.join(" ")}"`).join(" ");
}
