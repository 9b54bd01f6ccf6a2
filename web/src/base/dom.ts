// Elements by function call. Text goes in as text nodes only, so nothing the venue sends is ever parsed as markup,
// and styles go in by class, so nothing needs an inline style.

type Child = Node | string | null | undefined | false;
type Value = string | number | boolean | null | undefined;
/** A misspelt attribute would do nothing, so only these pass the compiler: add one here when it is first used. */
type Name =
  | "accept" | "autocomplete" | "checked" | "class" | "colspan" | "disabled" | "download" | "for" | "hidden" | "href" | "id" | "inputmode"
  | "lang" | "list" | "max" | "maxlength" | "method" | "min" | "name" | "novalidate" | "open" | "placeholder" | "rel" | "role" | "scope"
  | "selected" | "spellcheck" | "step" | "tabindex" | "target" | "title" | "type" | "value";
type AriaName =
  | "activedescendant" | "atomic" | "autocomplete" | "busy" | "checked" | "controls" | "current" | "describedby" | "expanded" | "haspopup"
  | "hidden" | "invalid" | "label" | "labelledby" | "live" | "orientation" | "pressed" | "selected" | "sort" | "valuemax" | "valuemin"
  | "valuenow" | "valuetext";
type Attributes =
  & { [K in Name | `aria-${AriaName}` | `data-${string}`]?: Value }
  & { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };

/** `h("td.num", { title: "x" }, "1")`: tag with classes, attributes and `on...` listeners, children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  selector: K | `${K}.${string}`,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag = "div", ...classes] = selector.split(".");
  const element = document.createElement(tag) as HTMLElementTagNameMap[K];
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name.replace(/^on/, ""), value as EventListener);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

/** The same for SVG: tag, attributes, children. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Record<string, string | number> = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  append(element, children);
  return element;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      parent.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
    }
  }
}

/** Changes text only when it differs: no layout, no announcement otherwise. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no element #${id}: put it back.`);
  return element as T;
}

/** Text that only screen readers read. */
export function hidden(text: string): HTMLSpanElement {
  return h("span.sr", {}, text);
}
