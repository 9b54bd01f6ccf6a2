import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { OPERATIONS } from "../src/schema/operations.ts";
import { SCHEMA_FOLDER, schemaSources } from "../tools/schema.ts";

const API = new URL("../../../edge/api/", import.meta.url);

test("the types are those of the venue's description", () => {
  const sources = schemaSources();
  assert.deepEqual(readdirSync(SCHEMA_FOLDER).sort(), [...sources.keys()].sort());
  for (const [file, text] of sources) {
    assert.equal(
      readFileSync(new URL(file, SCHEMA_FOLDER), "utf8"),
      text,
      `${file} is another one: run \`npm run generate\` in sdk/typescript`,
    );
    assert.deepEqual(text.split("\n").filter((line) => line.length > 140), [], file);
  }
});

test("each interface has the fields of its schema, what it extends included", () => {
  const text = [...schemaSources().values()].join("\n");
  const found = text.matchAll(/^export interface (\w+) (?:extends (.+) )?\{\n([^]*?)^\}$/gm);
  const interfaces = new Map([...found].map(([, name = "", extending = "", body = ""]) => [name, { extending, body }]));
  const fieldsOf = (name: string): string[] => {
    const { extending = "", body = "" } = interfaces.get(name) ?? {};
    const [, base, omitted = ""] = /^(?:Omit<)?(\w+)(?:, (.+)>)?$/.exec(extending) ?? [];
    const inherited = base === undefined ? [] : fieldsOf(base).filter((field) => !omitted.includes(`"${field.replace("?", "")}"`));
    return [...inherited, ...[...body.matchAll(/^ {2}(\w+\??):/gm)].map(([, field = ""]) => field)].sort();
  };
  const { components } = parse(readFileSync(new URL("openapi.yaml", API), "utf8")) as { components: { schemas: Record<string, Schema> } };
  const schemas = Object.entries(components.schemas).filter(([, { type, properties }]) => type === "object" && properties !== undefined);
  for (const [name, { properties = {}, required = [] }] of schemas) {
    assert.deepEqual(fieldsOf(name), Object.keys(properties).map((field) => (required.includes(field) ? field : `${field}?`)).sort(), name);
  }
  assert.ok([...interfaces.values()].filter(({ extending }) => extending.startsWith("Omit<")).length > 2);
});

interface Schema {
  type?: string | string[];
  properties?: object;
  required?: string[];
}

interface Described {
  operationId?: string;
  responses?: Record<string, { content?: object }>;
}

test("every operation that answers in JSON is there, and every message of the WebSocket", () => {
  const { paths } = parse(readFileSync(new URL("openapi.yaml", API), "utf8")) as { paths: Record<string, Record<string, Described>> };
  const operations = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map((each) => [path, ...each] as const));
  const described = operations.flatMap(([path, method, { operationId, responses }]) => {
    const content = responses?.["200"]?.content ?? {};
    const isJson = path.startsWith("/v1/") && "application/json" in content && !path.includes("{file}");
    return isJson ? [[operationId, `${method.toUpperCase()} ${path}`]] : [];
  });
  assert.deepEqual(Object.entries(OPERATIONS).map(([name, { method, path }]) => [name, `${method} ${path}`]), described);
  assert.ok(described.length > 70, String(described.length));
  const asyncapi = parse(readFileSync(new URL("asyncapi.yaml", API), "utf8")) as { channels: { socket: { messages: object } } };
  const socket = readFileSync(new URL("socket.ts", SCHEMA_FOLDER), "utf8");
  const lists = [...socket.matchAll(/^export type Socket\w+ =\n((?: {2}\| Ws\w+;?\n)+)/gm)];
  const messages = lists.flatMap(([, list = ""]) => list.match(/Ws\w+/g) ?? []);
  assert.equal(messages.length, Object.keys(asyncapi.channels.socket.messages).length);
});
