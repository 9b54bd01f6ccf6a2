// Shows /openapi.json: each operation with its parameters, body and answers, and the schemas that they name.

import { block, example, load, make, prose, schemas, shape, show } from "/docs/shapes.js";

function operation(api, path, method, says) {
  const id = says.operationId ?? `${method} ${path}`;
  const summary = make("span", { class: "summary" }, says.summary ?? "");
  const head = [make("span", { class: "method" }, method), " ", make("code", {}, path), " ", summary];
  const text = [method, path, says.summary, says.description, ...(says.parameters ?? []).map(({ name }) => name)].join(" ");
  return block(id, head, text, () => {
    const parts = [];
    if (says.description) parts.push(make("p", {}, ...prose(says.description)));
    const rights = (says.security ?? []).flatMap((one) => Object.values(one).flat());
    if (rights.length > 0) parts.push(make("p", {}, `Signed, with a key that may: ${rights.join(", ")}.`));
    if (says.parameters) {
      const meaning = ({ in: place, description, example: value }) =>
        [description, `In the ${place}.`, value !== undefined && `Such as \`${value}\`.`].filter(Boolean).join(" ");
      const properties = Object.fromEntries(says.parameters.map((one) => [one.name, { ...one.schema, description: meaning(one) }]));
      const required = says.parameters.filter((parameter) => parameter.required).map(({ name }) => name);
      parts.push(make("h3", {}, "Parameters"), ...shape(api, id, { properties, required }));
    }
    const body = says.requestBody?.content?.["application/json"];
    if (body) {
      parts.push(make("h3", {}, "Body"));
      if (body.example) parts.push(example(body.example));
      parts.push(...named(api, id, body.schema));
    }
    const answer = says.responses?.["200"]?.content?.["application/json"];
    if (answer?.schema) {
      parts.push(make("h3", {}, "Answer"));
      for (const { $ref, value } of Object.values(answer.examples ?? {})) {
        parts.push(example($ref ? api.components.examples[$ref.split("/").pop()].value : value));
      }
      parts.push(...named(api, id, answer.schema));
    }
    const text = says.responses?.["200"]?.content?.["text/plain"]?.example;
    if (text) parts.push(make("h3", {}, "Answer"), make("pre", { class: "example" }, text));
    // What the body and the answer both name is shown once.
    const seen = new Set();
    return parts.filter((part) => part.className !== "schema" || (!seen.has(part.id) && seen.add(part.id)));
  });
}

/** A schema with a name has its name over it; of several, each. */
function named(api, id, schema) {
  return schema.$ref || schema.oneOf ? schemas(api, id, [schema]) : shape(api, id, schema);
}

show(async (all) => {
  const api = await load("/openapi.json");
  all.replaceChildren(make("details", { class: "intro" },
    make("summary", {}, "How to read it: numbers, answers, signing, sessions"), make("pre", {}, api.info.description)));
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, says] of Object.entries(methods)) all.append(operation(api, path, method, says));
  }
});
