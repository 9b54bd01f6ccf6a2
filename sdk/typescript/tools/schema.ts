// Writes the types of the venue's messages from its description: edge/api/openapi.yaml and edge/api/asyncapi.yaml. It knows the words of
// JSON Schema that the description uses, and stops at any other.

import { readFileSync } from "node:fs";
import { parse } from "yaml";

type Json = Record<string, unknown>;

const API = new URL("../../../edge/api/", import.meta.url);
/** Where the results are kept. */
export const SCHEMA_FOLDER = new URL("../src/schema/", import.meta.url);
const COLUMNS = 132;
const SCHEMA_REF = /^(?:\/openapi\.yaml)?#\/components\/schemas\/(\w+)$/;
/** Words that say nothing of a type. */
const SILENT = new Set(["description", "default", "format", "minimum", "maximum", "example"]);
const METHODS = new Set(["get", "post", "put", "patch", "delete"]);
const OPERATORS = [
  "Admin", "AccountKey", "AccountRequest", "AccountAnswer", "AccountStatusRequest", "AddReplica", "Asset(Request|Answer)", "BindingLimits",
  "Accounts", "Done", "Engine", "Fault", "Fees", "Instrument(Request|Answer|Shard)", "Issuer", "Key", "Limits", "Operator", "PhaseRequest",
  "Replica", "Snapshot", "Transfer", "Delivered",
];
/** Which file a schema is in: the first whose pattern fits its name. */
const FILES: [file: string, names: RegExp][] = [
  ["socket.ts", /^(Ws|One)/],
  ["batches.ts", /^(Batch|Pool|Offer|Transaction|AccountFee$)/],
  ["machines.ts", /^(Clock|Cluster|Relay|Layer|FairAccess|StampClock|Gateway|Sequencer|Release|Latency|Stage|Readiness|PathFaults|Shard)/],
  ["operators.ts", new RegExp(`^(${OPERATORS.join("|")})`)],
  ["trading.ts", /./],
];
/** By a schema's name the other one that it extends: it has most of that one's fields, and their descriptions hold for it too. */
const BASES: Record<string, string> = {
  OneOrder: "OrderRequest", OneAmend: "AmendRequest", WsOrder: "OneOrder", WsCancel: "OneCancel", WsAmend: "OneAmend",
  WsMassCancel: "OneMassCancel", WsReply: "OrderAnswer", WsMassCancelReply: "MassCancelAnswer", WsRepeatedReply: "RepeatedAnswer",
  WsError: "Error", WsBook: "Book", WsTicker: "Ticker", WsStatus: "Status", WsDemand: "BatchDemand", PastTrade: "Trade",
  AdminAccount: "Account", KeyAnswer: "Key", TransferAnswer: "Transfer", Instrument: "ListedInstrument",
};

const HEAD = [
  "// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal",
  "// strings, times and 64-bit ids strings of digits.",
  "", "",
].join("\n");

/** The files of src/schema, by name. */
export function schemaSources(): Map<string, string> {
  const openapi = parse(readFileSync(new URL("openapi.yaml", API), "utf8")) as Json;
  const asyncapi = parse(readFileSync(new URL("asyncapi.yaml", API), "utf8")) as Json;
  const texts = new Map<string, string[]>(FILES.map(([file]) => [file, []]));
  const homes = new Map<string, string>();
  const schemas = within(openapi, "components", "schemas");
  const gone = Object.keys(BASES).find((name) => !(name in schemas));
  if (gone !== undefined) throw new Error(`the description has no ${gone}: remove it from BASES in tools/schema.ts`);
  for (const name of Object.keys(schemas)) {
    const file = FILES.find(([, names]) => names.test(name))?.[0] ?? "";
    homes.set(name, file);
    texts.get(file)?.push(declaration(name, schemas));
  }
  texts.get("socket.ts")?.push(...socketMessages(asyncapi));
  texts.set("operations.ts", operations(openapi));
  texts.set("index.ts", [[...texts.keys()].map((file) => `export * from "./${file}";\n`).join("")]);
  return new Map(
    [...texts].map(([file, parts]) => [file, HEAD + (file === "index.ts" ? "" : imports(file, parts.join(""), homes)) + parts.join("\n")]),
  );
}

/** Of the other files. */
function imports(file: string, text: string, homes: Map<string, string>): string {
  const code = text.replaceAll(/\/\*\*[^]*?\*\/|"[^"]*"/g, "");
  const used = new Set(code.match(/\b[A-Z]\w+\b/g));
  const lines = FILES.map(([other]) => {
    const names = [...homes].filter(([name, home]) => home === other && home !== file && used.has(name)).map(([name]) => name).sort();
    return names.length === 0 ? "" : `import type {${wrapped(names)}} from "./${other}";\n`;
  });
  const all = lines.join("");
  return all === "" ? "" : `${all}\n`;
}

function wrapped(names: string[]): string {
  const one = ` ${names.join(", ")} `;
  if (one.length <= COLUMNS - 40) return one;
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + name.length + 2 <= COLUMNS) lines[lines.length - 1] = `${last} ${name},`;
    else lines.push(`  ${name},`);
  }
  return `\n${lines.join("\n")}\n`;
}

function within(of: unknown, ...path: string[]): Json {
  return path.reduce((value, name) => {
    const next = (value as Json | undefined)?.[name];
    if (typeof next !== "object" || next === null) throw new Error(`the description has no ${path.join(".")}`);
    return next as Json;
  }, of as Json);
}

function declaration(name: string, schemas: Json): string {
  const schema = within(schemas, name);
  const described = comment(schema["description"]);
  if (schema["type"] !== "object" || schema["properties"] === undefined) {
    return described + typed(`export type ${name} =`, typeOf(schema, name));
  }
  const { extending, own } = inherited(name, schemas);
  return `${described}export interface ${name} ${extending}${block(own)}\n`;
}

interface Field {
  name: string;
  isOptional: boolean;
  type: string;
  description: unknown;
}

function fieldsOf(schema: Json, place: string): Field[] {
  if (schema["additionalProperties"] !== false) throw new Error(`${place}: additionalProperties is false`);
  const required = new Set(schema["required"] as string[] | undefined);
  return Object.entries(within(schema, "properties")).map(([name, field]) => {
    const { description } = field as Json;
    return { name, isOptional: !required.has(name), type: typeOf(field as Json, `${place}.${name}`), description };
  });
}

/** What a schema extends by `BASES`, and the fields that it does not have from there. */
function inherited(name: string, schemas: Json): { extending: string; own: Field[] } {
  const fields = fieldsOf(within(schemas, name), name);
  const base = BASES[name];
  if (base === undefined) return { extending: "", own: fields };
  const isAlike = (one: Field) => (other: Field): boolean =>
    one.name === other.name && one.type === other.type && one.isOptional === other.isOptional;
  const theirs = fieldsOf(within(schemas, base), base);
  const others = theirs.filter((field) => !fields.some(isAlike(field)));
  if (others.length * 2 > theirs.length) {
    throw new Error(`${name} has few of the fields of ${base}: remove it from BASES in tools/schema.ts`);
  }
  const left = others.map((field) => JSON.stringify(field.name)).join(" | ");
  return {
    extending: `extends ${left === "" ? base : `Omit<${base}, ${left}>`} `,
    own: fields.filter((field) => !theirs.some(isAlike(field))),
  };
}

function block(fields: Field[]): string {
  const lines = fields.map(({ name, isOptional, type, description }) =>
    comment(description, "  ") + typed(`  ${name}${isOptional ? "?" : ""}:`, type));
  return `{\n${lines.join("")}}`;
}

/** What is declared and its type: on one line where that fits, or a union on several. */
function typed(head: string, type: string): string {
  const margin = " ".repeat(head.search(/\S/));
  const one = `${head} ${type.replaceAll("\n", `\n${margin}`)};`;
  if (one.length <= COLUMNS || /[([{<]/.test(type)) return `${one}\n`;
  const lines: string[] = [];
  for (const each of type.split(" | ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + each.length + 4 <= COLUMNS) lines[lines.length - 1] = `${last} | ${each}`;
    else lines.push(`${margin}  | ${each}`);
  }
  return `${head}\n${lines.join("\n")};\n`;
}

function typeOf(schema: Json, place: string): string {
  const known = new Set([
    "$ref", "oneOf", "enum", "type", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems",
  ]);
  const unknown = Object.keys(schema).find((word) => !known.has(word) && !SILENT.has(word));
  if (unknown !== undefined) throw new Error(`${place}: tools/schema.ts does not know "${unknown}"`);
  if (typeof schema["$ref"] === "string") return nameOfRef(schema["$ref"], place);
  if (Array.isArray(schema["oneOf"])) return union(schema["oneOf"].map((each) => typeOf(each as Json, place)));
  if (Array.isArray(schema["enum"])) return union(schema["enum"].map((each) => JSON.stringify(each)));
  const names = Array.isArray(schema["type"]) ? schema["type"] as string[] : [String(schema["type"])];
  return union(names.map((name) => basicType(name, schema, place)));
}

function union(types: string[]): string {
  return [...new Set(types)].join(" | ");
}

function nameOfRef(ref: string, place: string): string {
  const name = SCHEMA_REF.exec(ref)?.[1];
  if (name === undefined) throw new Error(`${place}: "${ref}" names no schema`);
  return name;
}

function basicType(name: string, schema: Json, place: string): string {
  switch (name) {
    case "string":
    case "boolean":
    case "null":
      return name;
    case "integer":
      return "number";
    case "array":
      return arrayType(schema, place);
    case "object":
      return objectType(schema, place);
    default:
      throw new Error(`${place}: tools/schema.ts does not know the type "${name}"`);
  }
}

function arrayType(schema: Json, place: string): string {
  const fixed = schema["minItems"] === schema["maxItems"] ? schema["minItems"] as number | undefined : undefined;
  if (Array.isArray(schema["prefixItems"])) {
    const types = schema["prefixItems"].map((each) => typeOf(each as Json, place));
    if (fixed !== types.length) throw new Error(`${place}: minItems and maxItems are the number of prefixItems`);
    return `[${types.join(", ")}]`;
  }
  const item = typeOf(within(schema, "items"), place);
  if (fixed !== undefined) return `[${Array.from({ length: fixed }, () => item).join(", ")}]`;
  return item.includes(" ") ? `(${item})[]` : `${item}[]`;
}

function objectType(schema: Json, place: string): string {
  const more = schema["additionalProperties"];
  if (schema["properties"] === undefined) {
    if (typeof more !== "object" || more === null) throw new Error(`${place}: an object has properties, or says what each value is`);
    return `Record<string, ${typeOf(more as Json, place)}>`;
  }
  return block(fieldsOf(schema, place));
}

/** A description as a comment, wrapped. */
function comment(text: unknown, indent = ""): string {
  if (typeof text !== "string") return "";
  const words = text.trim().replaceAll("*/", "*\u200b/").split(/\s+/);
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && indent.length + 3 + last.length + 1 + word.length <= COLUMNS) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  const [only] = lines;
  if (lines.length === 1 && indent.length + 7 + (only?.length ?? 0) <= COLUMNS) return `${indent}/** ${only} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join("")}${indent} */\n`;
}

/** What REST has, by its operation's name: the types of what goes and comes, and how it is asked for. */
function operations(openapi: Json): string[] {
  const types: string[] = [];
  const rows: string[] = [];
  for (const [path, methods] of Object.entries(within(openapi, "paths"))) {
    for (const [method, described] of Object.entries(methods as Json).filter(([name]) => METHODS.has(name))) {
      const operation = described as Json;
      const answer = answerOf(operation);
      if (answer === undefined || !path.startsWith("/v1/")) continue;
      const name = String(operation["operationId"]);
      const asked = operation["requestBody"];
      const body = asked === undefined ? "undefined" : typeOf(within(asked, "content", "application/json", "schema"), name);
      const [inPath, inQuery] = [parameters(operation, "path"), parameters(operation, "query")];
      const type = laidOut(name, [["path", inPath], ["query", inQuery], ["body", body], ["answer", answer]]);
      types.push(comment(operation["summary"], "  ") + type);
      rows.push(`  ${name}: { method: "${method.toUpperCase()}", path: "${path}", isSigned: ${operation["security"] !== undefined} },\n`);
    }
  }
  return [
    `/** What each operation of REST takes and answers. */\nexport interface Operations {\n${types.join("")}}\n`,
    "/** How each is asked for; in a path, names in braces stand for parameters. */\n" +
      "export const OPERATIONS: { readonly [Name in keyof Operations]: { method: string; path: string; isSigned: boolean } } = {\n" +
      `${rows.join("")}};\n`,
  ];
}

/** `undefined` for what is not answered in JSON of a schema. */
function answerOf(operation: Json): string | undefined {
  const answered = within(operation, "responses")["200"] as Json | undefined;
  const content = answered?.["content"] as Json | undefined;
  const schema = (content?.["application/json"] as Json | undefined)?.["schema"];
  return schema === undefined ? undefined : typeOf(schema as Json, String(operation["operationId"]));
}

/** A type, or the fields that are in its braces. */
type Shape = string | [field: string, shape: Shape][];

function parameters(operation: Json, place: "path" | "query"): Shape {
  const all = ((operation["parameters"] ?? []) as Json[]).filter((each) => each["in"] === place);
  if (all.length === 0) return "undefined";
  return all.map((each) => {
    const name = String(each["name"]);
    return [each["required"] === true ? name : `${name}?`, typeOf(within(each, "schema"), name)];
  });
}

/** A field: on one line where that fits, or what is in its braces line by line. */
function laidOut(field: string, shape: Shape, indent = "  "): string {
  const one = `${indent}${field}: ${onOneLine(shape)};`;
  if (typeof shape === "string" || one.length <= COLUMNS) return `${one}\n`;
  const lines = shape.map(([inner, innerShape]) => laidOut(inner, innerShape, `${indent}  `));
  return `${indent}${field}: {\n${lines.join("")}${indent}};\n`;
}

function onOneLine(shape: Shape): string {
  return typeof shape === "string" ? shape : `{ ${shape.map(([field, inner]) => `${field}: ${onOneLine(inner)}`).join("; ")} }`;
}

/** What goes over the WebSocket either way, as the AsyncAPI document lists it. */
function socketMessages(asyncapi: Json): string[] {
  const messages = within(asyncapi, "channels", "socket", "messages");
  const named = (operation: string): string[] => {
    const list = within(asyncapi, "operations", operation)["messages"] as { $ref: string }[];
    return list.map(({ $ref }) => {
      const name = $ref.slice($ref.lastIndexOf("/") + 1);
      return nameOfRef(String(within(messages, name, "payload")["$ref"]), `asyncapi.yaml, ${name}`);
    });
  };
  const type = (name: string, what: string, operation: string): string => {
    const lines = named(operation).map((each) => `\n  | ${each}`);
    return `/** ${what} */\nexport type ${name} =${lines.join("")};\n`;
  };
  return [
    type("SocketRequest", "What a client sends over the WebSocket.", "ask"),
    type("SocketMessage", "What the venue sends over it.", "tell"),
  ];
}
