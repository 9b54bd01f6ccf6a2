import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { installed } from "./installed.ts";

const PACKAGE = join(import.meta.dirname, "..");
const DOCS = join(PACKAGE, "../../docs");
let folder = "";
before(() => {
  folder = installed();
});
after(() => rmSync(folder, { recursive: true, force: true }));

function node(program: string): string {
  writeFileSync(join(folder, "program.mjs"), program);
  return execFileSync(process.execPath, ["program.mjs"], { cwd: folder, encoding: "utf8" });
}

/** As a program would be checked, the package's own declarations too. */
function compile(files: string[], options: object): void {
  const config = {
    compilerOptions: {
      noEmit: true, strict: true, skipLibCheck: false, target: "ES2022", lib: ["ES2023", "DOM"],
      typeRoots: [join(PACKAGE, "node_modules/@types")], ...options,
    },
    files,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  try {
    execFileSync(process.execPath, [join(PACKAGE, "node_modules/typescript/bin/tsc"), "--project", folder], { encoding: "utf8" });
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
}

test("it needs no other package, and has its licences and no sources", () => {
  const manifest = JSON.parse(readFileSync(join(folder, "node_modules/walras/package.json"), "utf8")) as { dependencies?: object };
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith(".")), ["walras"]);
  const files = readdirSync(join(folder, "node_modules/walras"), { recursive: true, encoding: "utf8" });
  for (const file of ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "dist/index.js", "dist/index.d.ts"]) {
    assert.ok(files.includes(file), file);
  }
  assert.deepEqual(files.filter((file) => /^(src|test|tools)\b/.test(file)), []);
});

test("a program in Node imports it and reads a key", () => {
  const said = node(`
    import { Client, commands, light, newKey, parseKey, keyLine } from "walras";
    const key = newKey();
    const client = new Client({ url: "http://127.0.0.1:1", key: keyLine(key) });
    console.log(JSON.stringify([client.key.id === parseKey(keyLine(key)).id, commands.massCancel(), typeof light.LightBlock]));
    await client.status().catch((error) => console.log(error.name));
  `);
  assert.equal(said, '[true,{"op":"mass_cancel"},"function"]\nNotConnected\n');
});

test("its declarations compile, for Node and for bundlers, with the venue's types", () => {
  const program = `
    import { Client, Refused, type Order, type schema } from "walras";
    const client = new Client({ url: ["http://a", "http://b"], key: "hm_a.c2VjcmV0" });
    const orders: Promise<Order[]> = client.openOrders();
    const limits: schema.LimitsRequest | null = null;
    // @ts-expect-error: a number is no exact size.
    void client.submit({ instrument: "BTC-USD", side: "buy", size: 0.5 });
    // @ts-expect-error: there is no such side.
    void client.submit({ instrument: "BTC-USD", side: "long", size: "0.5" });
    void client.call("getOrder", { path: { instrument: "BTC-USD", client_order_id: "7" } }).then(({ filled }: schema.OrderState) => filled);
    // @ts-expect-error: the path lacks the order.
    void client.call("getOrder", { path: { instrument: "BTC-USD" } });
    void (async () => {
      for await (const message of client.stream()) if (message.type === "book") message.checksum.toFixed();
    })();
    export { Refused, limits, orders };
  `;
  writeFileSync(join(folder, "consumer.ts"), program);
  for (const options of [
    { module: "nodenext", moduleResolution: "nodenext", types: ["node"] },
    { module: "esnext", moduleResolution: "bundler", types: [] },
  ]) {
    compile(["consumer.ts"], options);
  }
});

test("the programs of its README compile", () => {
  const blocks = [...readFileSync(join(PACKAGE, "README.md"), "utf8").matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, block]) => block ?? "");
  assert.ok(blocks.length >= 5);
  const files = blocks.map((block, at) => {
    writeFileSync(join(folder, `block${at}.ts`), block);
    return `block${at}.ts`;
  });
  compile(files, { module: "nodenext", moduleResolution: "nodenext", types: ["node"] });
});

test("the bot of docs/first-bot.md is short, and compiles", () => {
  copyFileSync(join(DOCS, "first-bot.mjs"), join(folder, "first-bot.mjs"));
  assert.ok(readFileSync(join(DOCS, "first-bot.mjs"), "utf8").split("\n").length <= 31);
  compile(["first-bot.mjs"], {
    module: "nodenext", moduleResolution: "nodenext", types: ["node"], allowJs: true, checkJs: true, strict: false,
  });
});
