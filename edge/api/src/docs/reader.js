// Shows /openapi.json: each operation with its parameters, body and answers, and the schemas that they name.
const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};

/** A schema as a short text; names of others stay names. */
function shape(schema, depth = 0) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.oneOf) return schema.oneOf.map((one) => shape(one, depth)).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `[${shape(schema.items, depth) || "any"}]`;
  if (schema.type === "object" && schema.properties) {
    const pad = "  ".repeat(depth + 1);
    const required = new Set(schema.required ?? []);
    const rows = Object.entries(schema.properties).map(([name, field]) => {
      const about = field.description ? `  // ${field.description}` : "";
      return `${pad}${name}${required.has(name) ? "" : "?"}: ${shape(field, depth + 1)}${about}`;
    });
    return `{\n${rows.join("\n")}\n${"  ".repeat(depth)}}`;
  }
  return [[].concat(schema.type ?? "any").join(" | "), schema.format && `(${schema.format})`].filter(Boolean).join(" ");
}

const named = (schema, found = new Set()) => {
  JSON.stringify(schema ?? null, (key, value) => {
    if (key === "$ref" && value.startsWith("#/components/schemas/")) found.add(value.split("/").pop());
    return value;
  });
  return found;
};

function schemas(document, ...roots) {
  const names = new Set();
  let fresh = roots.flatMap((root) => [...named(root)]);
  while (fresh.length) {
    const name = fresh.pop();
    if (names.has(name)) continue;
    names.add(name);
    fresh.push(...named(document.components.schemas[name]));
  }
  return [...names].map((name) => make("pre", `${name} = ${shape(document.components.schemas[name])}`));
}

function operation(document, path, method, says) {
  const block = make("details");
  const head = make("summary", "", make("span", method), " ", make("code", path), ` ${says.summary ?? ""}`);
  head.firstChild.className = "method";
  block.append(head);
  block.dataset.text = `${method} ${path} ${says.summary ?? ""} ${says.description ?? ""}`.toLowerCase();
  block.addEventListener("toggle", () => {
    if (!block.open || block.childElementCount > 1) return;
    if (says.description) block.append(make("p", says.description));
    const rights = (says.security ?? []).flatMap((one) => Object.values(one).flat());
    if (rights.length) block.append(make("p", `Signed, with a key that may: ${rights.join(", ")}.`));
    if (says.parameters) {
      const row = (p) => make("tr", "", make("td", "", make("code", p.name)), make("td", p.in), make("td", shape(p.schema)), make("td", p.description));
      block.append(make("table", "", ...says.parameters.map(row)));
    }
    const body = says.requestBody?.content?.["application/json"];
    if (body) block.append(make("p", `Body: ${shape(body.schema)}`));
    if (body?.example) block.append(make("pre", JSON.stringify(body.example, null, 2)));
    const answer = says.responses?.["200"]?.content?.["application/json"];
    if (answer) block.append(make("p", `Answer: ${shape(answer.schema)}`));
    if (answer?.example) block.append(make("pre", JSON.stringify(answer.example, null, 2)));
    block.append(...schemas(document, body?.schema, answer?.schema));
  });
  return block;
}

async function show() {
  const all = document.getElementById("all");
  const description = await (await fetch("/openapi.json")).json();
  all.replaceChildren(make("details", "", make("summary", "How to read it: numbers, answers, signing, sessions"), make("pre", description.info.description)));
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, says] of Object.entries(methods)) all.append(operation(description, path, method, says));
  }
  const find = document.getElementById("find");
  find.addEventListener("input", () => {
    for (const block of all.querySelectorAll("details[data-text]")) block.hidden = !block.dataset.text.includes(find.value.toLowerCase());
  });
}
show().catch((e) => document.getElementById("all").replaceChildren(make("p", `The description cannot be read: ${e}`)));
