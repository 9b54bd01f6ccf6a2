// What both readers share: elements, schemas as tables of fields, examples, blocks that open, and finding them.

/** Text goes in as text only. */
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return element;
}

/** What stands between backticks is code. */
export const prose = (text) => text.split("`").map((part, at) => (at % 2 === 1 ? make("code", {}, part) : part));

export async function load(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status}`);
  return answer.json();
}

const nameOf = (reference) => reference.split("/").pop();

/** A schema as elements in a line; those with a name of their own link to it within the block. */
function typeOf(schema, block) {
  if (!schema) return ["anything"];
  const joined = (schemas, between) => schemas.flatMap((one, at) => (at === 0 ? typeOf(one, block) : [between, ...typeOf(one, block)]));
  if (schema.$ref) return [make("a", { href: `#${block}.${nameOf(schema.$ref)}` }, nameOf(schema.$ref))];
  if (schema.oneOf) return joined(schema.oneOf, " or ");
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" | ")];
  if (schema.prefixItems) return ["[", ...joined(schema.prefixItems, ", "), "]"];
  if (schema.type === "array") return ["list of ", ...typeOf(schema.items, block)];
  if (typeof schema.additionalProperties === "object") return ["object of ", ...typeOf(schema.additionalProperties, block)];
  const [type, format] = [[].concat(schema.type ?? "anything").join(" or "), schema.format];
  const [least, most] = [schema.minimum, schema.maximum];
  const bounds = least !== undefined && most !== undefined ? `, ${least} to ${most}` : least !== undefined ? `, from ${least}` : "";
  return [`${type}${format ? ` (${format})` : ""}${bounds}`];
}

/** The schema's fields, those of objects without a name of their own among them. */
function rowsOf(schema, block, prefix = "") {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const isList = field.type === "array";
    const inner = isList ? field.items : field;
    const path = `${prefix}${name}`;
    const row = make("tr", {},
      make("td", {}, make("code", {}, path), required.has(name) ? "" : make("small", {}, " optional")),
      make("td", {}, ...typeOf(field, block)),
      make("td", {}, ...prose(field.description ?? "")));
    return [row, ...(inner?.properties ? rowsOf(inner, block, `${path}${isList ? "[]" : ""}.`) : [])];
  });
}

function fields(schema, block) {
  const head = make("thead", {}, make("tr", {}, ...["Field", "Type", "Meaning"].map((name) => make("th", { scope: "col" }, name))));
  return make("table", { class: "fields" }, head, make("tbody", {}, ...rowsOf(schema, block)));
}

function content(schema, block) {
  const about = schema.description ? [make("p", {}, ...prose(schema.description))] : [];
  return schema.properties ? [...about, fields(schema, block)] : [...about, make("p", {}, "It is ", ...typeOf(schema, block), ".")];
}

function namedIn(schema) {
  const names = [];
  JSON.stringify(schema ?? null, (key, value) => {
    if (key === "$ref" && typeof value === "string" && value.includes("#/components/schemas/")) names.push(nameOf(value));
    return value;
  });
  return names;
}

/** What these schemas name, and what that names, each once, without those that are shown already. */
export function schemas(api, block, roots, shown = []) {
  const [names, fresh] = [new Set(shown), roots.flatMap(namedIn)];
  const parts = [];
  while (fresh.length > 0) {
    const name = fresh.shift();
    const schema = api.components.schemas[name];
    if (names.has(name) || schema === undefined) continue;
    names.add(name);
    fresh.push(...namedIn(schema));
    parts.push(make("section", { class: "schema", id: `${block}.${name}` }, make("h4", {}, name), ...content(schema, block)));
  }
  return parts;
}

/** A schema that is the block's own: its fields, and whatever they name. */
export function shape(api, block, schema) {
  const name = schema.$ref && nameOf(schema.$ref);
  const own = name ? api.components.schemas[name] : schema;
  return [...content(own, block), ...schemas(api, block, [own], name ? [name] : [])];
}

/** Short lists and objects stay in a line. */
function inLines(value, indent = "") {
  const line = JSON.stringify(value);
  const isFlat = typeof value !== "object" || value === null || (Array.isArray(value) && line.length <= 60 && !line.includes("{"));
  if (isFlat) return line.replaceAll(/,(?=\S)/g, Array.isArray(value) ? ", " : ",");
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((one) => `${inner}${inLines(one, inner)}`)
    : Object.entries(value).map(([name, one]) => `${inner}${JSON.stringify(name)}: ${inLines(one, inner)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return parts.length === 0 ? `${open}${close}` : `${open}\n${parts.join(",\n")}\n${indent}${close}`;
}

export const example = (value) => make("pre", { class: "example" }, inLines(value));

/** A block that is filled when it opens. `text` is what it is found by. */
export function block(id, head, text, fill) {
  const body = make("div", { class: "body" });
  const element = make("details", { id, class: "block" }, make("summary", {}, ...head), body);
  element.dataset.text = text.toLowerCase();
  const filled = () => {
    if (body.childElementCount === 0) body.append(...fill());
  };
  element.addEventListener("toggle", () => element.open && filled());
  element.fill = filled;
  return element;
}

/** Opens what the address names: a block, or a schema within one. */
export function followAddress() {
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const owner = document.getElementById(id.split(".")[0]);
    if (owner?.matches("details.block")) {
      owner.hidden = false;
      owner.open = true;
      owner.fill();
    }
    document.getElementById(id)?.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
}

export function findBlocks() {
  const find = document.getElementById("find");
  const found = document.getElementById("found");
  const look = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const blocks = [...document.querySelectorAll("details.block")];
    for (const one of blocks) one.hidden = !words.every((word) => one.dataset.text.includes(word));
    const shown = blocks.filter((one) => !one.hidden).length;
    found.textContent = words.length === 0 ? "" : `${shown} of ${blocks.length}`;
  };
  find.addEventListener("input", look);
  look();
}

export function show(render) {
  const all = document.getElementById("all");
  render(all).then(() => {
    findBlocks();
    followAddress();
  }).catch((error) => all.replaceChildren(make("p", { role: "alert" },
    `The description cannot be read: ${error.message}. Load the page again, or read it as text.`)));
}
