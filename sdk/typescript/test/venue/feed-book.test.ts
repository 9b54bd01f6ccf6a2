// The program of docs/feed-book.mjs keeps a book of a venue with a relay tree.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { copyFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { endsWithTest, exitOf, withinMs } from "../process.ts";
import { Venue } from "./venue.ts";

const [DOCS, PACKAGES] = [join(import.meta.dirname, "../../../../docs"), join(import.meta.dirname, "../../node_modules")];
const PATIENCE_MS = 60_000;
const venue = new Venue();
after(() => venue.end());

async function freeAddress(): Promise<string> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  return `127.0.0.1:${port}`;
}

test("it begins late, from a snapshot, and follows", async () => {
  const [receiver, keyFile, tree] = [await freeAddress(), join(venue.folder, "tree.key"), join(venue.folder, "tree.toml")];
  writeFileSync(keyFile, "07".repeat(32));
  writeFileSync(tree, `tree = 3\nkey_file = "tree.key"\nlayers = [["${receiver}"]]\n`);
  venue.more = `[feed]\ntree = "${tree}"\nsource = "127.0.0.1:0"\nsnapshot_rotation_ms = 50\nheartbeat_ms = 20\n`;
  await venue.start();
  await venue.setUp();
  copyFileSync(join(DOCS, "feed-book.mjs"), join(venue.folder, "feed-book.mjs"));
  // Programs find packages from the folder in which they lie.
  symlinkSync(PACKAGES, join(venue.folder, "node_modules"));
  const client = venue.client();
  await client.submit({ instrument: "BTC-USD", side: "buy", size: "0.5", price: "29990", client_order_id: "bid" });
  const args = [join(venue.folder, "feed-book.mjs"), receiver, keyFile, "0"];
  const book = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  endsWithTest(book);
  const lines = createInterface({ input: book.stdout })[Symbol.asyncIterator]();
  const reads = async (best: string): Promise<void> => {
    for (let line = await lines.next(); line.value !== best; line = await lines.next()) assert.ok(!line.done, `it ended before ${best}`);
  };
  const shows = (best: string): Promise<void> => withinMs(PATIENCE_MS, `it shows ${best}`, reads(best));
  try {
    // A tick is 0.5.
    await shows("59980 -");
    await client.submit({ instrument: "BTC-USD", side: "sell", size: "0.5", price: "30000.5", client_order_id: "ask" });
    await shows("59980 60001");
    await client.cancel("BTC-USD", "bid");
    await shows("- 60001");
  } finally {
    book.kill();
    await exitOf(book);
  }
});
