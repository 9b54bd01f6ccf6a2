// Shows /asyncapi.json: where to connect, the channels, and each message with its examples and fields. The shapes are those of
// /openapi.json.

import { block, example, load, make, prose, shape, show } from "/docs/shapes.js";

/** What a reference of the document leads to, and the name of the message that it is. */
function messageAt(description, { $ref }) {
  const name = $ref.split("/").pop();
  return [name, $ref.split("/").slice(1).reduce((at, step) => at[step], description)];
}

/** As it is on the wire: its `op` or `type`. */
function wireName(api, message) {
  const { properties } = api.components.schemas[message.payload.$ref.split("/").pop()];
  return (properties.op ?? properties.type).enum.join(", ");
}

function message(api, [name, says]) {
  const schema = api.components.schemas[says.payload.$ref.split("/").pop()];
  const wire = wireName(api, says);
  const text = [name, wire, says.summary, says.description, schema.description, ...Object.keys(schema.properties)].join(" ");
  return block(name, [make("code", { class: "wire" }, wire), " ", make("span", { class: "summary" }, says.summary)], text, () => [
    ...(says.description ? [make("p", {}, ...prose(says.description))] : []),
    make("h3", {}, says.examples.length === 1 ? "Example" : "Examples"),
    ...says.examples.map(({ payload }) => example(payload)),
    make("h3", {}, "Fields"),
    ...shape(api, name, says.payload),
  ]);
}

function subscriptions(description, channel) {
  const row = ({ channel: name, needs, first, then, message: reference }) => {
    const [to] = messageAt(description, reference);
    return make("tr", {},
      make("td", {}, make("a", { href: `#${to}` }, make("code", {}, name))),
      make("td", { "data-label": "Needs" }, needs.length === 0 ? "nothing" : needs.join(", ")),
      make("td", { "data-label": "First message" }, first), make("td", { "data-label": "Then" }, then));
  };
  const head = ["Channel", "Needs", "First message", "Then"].map((name) => make("th", { scope: "col" }, name));
  return make("table", { class: "channels" },
    make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...channel["x-subscriptions"].map(row)));
}

/** Where this very venue has it. */
function addressOf({ address }) {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${address}`;
}

show(async (all) => {
  const [description, api] = await Promise.all([load("/asyncapi.json"), load("/openapi.json")]);
  const { socket } = description.channels;
  all.replaceChildren(
    make("section", {},
      make("p", {}, ...prose(description.info.description)),
      make("p", {}, "Connect to ", make("code", { id: "address" }, addressOf(socket)), ".")),
    make("section", {}, make("h2", {}, "Channels"), subscriptions(description, socket)),
    ...Object.values(description.operations).map(({ summary, messages }) =>
      make("section", {},
        make("h2", {}, summary.replace(/\.$/, "")),
        ...messages.map((reference) => message(api, messageAt(description, reference))))),
  );
});
