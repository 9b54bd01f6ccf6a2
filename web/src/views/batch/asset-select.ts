// A choice of one of the market's assets.

import { h } from "../../base/dom.ts";

export function assetSelect(id: string, label: string, choose: (asset: string) => void): HTMLSelectElement {
  const select = h("select", { id, "aria-label": label });
  select.addEventListener("change", () => choose(select.value));
  return select;
}

export function fillAssets(select: HTMLSelectElement, assets: string[], chosen: string): void {
  const shown = [...select.options].map(({ value }) => value);
  if (shown.join(" ") !== assets.join(" ")) select.replaceChildren(...assets.map((asset) => h("option", { value: asset }, asset)));
  if (select.value !== chosen) select.value = chosen;
}
