// Puts the page's language into what index.html says before any script runs.

import { byId, setText } from "../base/dom.ts";
import { t } from "./index.ts";

export function translateDocument(): void {
  for (const [id, text] of Object.entries(t.headings)) setText(byId(id), text);
  for (const [id, label] of Object.entries(t.labels)) byId(id).setAttribute("aria-label", label);
}
