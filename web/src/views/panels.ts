// Which panels of the order book's view are shown, and where: by what the user chose. The page's style has the widths of the columns.

import { byId } from "../base/dom.ts";
import { hiddenPanels, layout, PANELS } from "../base/settings.ts";
import type { Signal } from "../base/signal.ts";
import { type Areas, gridsOf } from "../state/panels.ts";

export function panelsView(collects: Signal<boolean>): void {
  const { style } = byId("panels");
  const draw = (): void => {
    const shown = new Set(PANELS.filter((panel) => !hiddenPanels.value.includes(panel)));
    // An auction's price is nowhere else, so it is shown while there is one.
    if (collects.value) shown.add("depth");
    for (const panel of PANELS) byId(panel).hidden = !shown.has(panel);
    const { two, three, wide, wideRows } = gridsOf(layout.value, shown, collects.value);
    style.setProperty("--areas-two", quoted(two));
    style.setProperty("--areas-three", quoted(three));
    style.setProperty("--areas-wide", quoted(wide));
    style.setProperty("--rows-wide", wideRows.join(" "));
    document.documentElement.dataset["layout"] = layout.value;
  };
  layout.watch(draw);
  hiddenPanels.watch(draw);
  collects.watch(draw);
  draw();
}

function quoted(areas: Areas): string {
  return areas.map((row) => `"${row.join(" ")}"`).join(" ");
}
