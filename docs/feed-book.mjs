// Keeps a book by the binary feed and prints its best levels, in ticks (docs/market-data-feed.md). Needs `npm install @noble/hashes`:
// node feed-book.mjs OWN_ADDRESS TREE_KEY_FILE INSTRUMENT_ID. It asks for nothing: what is lost comes with the next snapshot.
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { blake3 } from "@noble/hashes/blake3.js";

const [address, keyFile, instrument] = process.argv.slice(2), [host, port] = address.split(":");
const key = Buffer.from(readFileSync(keyFile, "ascii").trim(), "hex"), own = 0x02000000 + Number(instrument), snapshots = 0x02ffffff;
let book, next = 0, waiting = new Map(), pieces = new Map(); // bids and asks; the message that is to come; later ones, and a snapshot's
const show = () => console.log(...["max", "min"].map((best, side) => (book[side].size > 0 ? Math[best](...book[side].keys()) : "-")));

function change(sides, m) { // by a LevelChanged, which is kind 20: the new size at a price
  if (m[1] === 20) sides[m[19]][m.readUIntLE(28, 6) > 0 ? "set" : "delete"](m.readIntLE(20, 6), m.readUIntLE(28, 6));
  return m[2] & 1; // whether its entry of the log ends with it
}

function begin(ended, number) {
  let piece, sides = [new Map(), new Map()], from = ended.readUIntLE(23, 6);
  while ((piece = pieces.get(--number)) && piece[1] !== 40) change(sides, piece); // back to where it began
  pieces.clear();
  if (!piece || ended.readUInt32LE(19) !== own || from < next) return; // not whole, of another market, or older
  [book, next, waiting] = [sides, from, new Map([...waiting].filter(([later]) => later >= from))];
  show();
}

createSocket("udp4", (packet) => {
  if (packet.length < 60 || !packet.subarray(-16).equals(blake3(packet.subarray(0, -16), { key }).subarray(0, 16))) return; // not sealed
  for (let number = packet.readUIntLE(20, 6), at = 44; at < packet.length - 16; number++) {
    const message = packet.subarray(at + 2, (at += 2 + packet.readUInt16LE(at)));
    if (packet.readUInt32LE(4) === own && number >= next && waiting.size < 10_000) waiting.set(number, message);
    if (packet.readUInt32LE(4) === snapshots) message[1] === 41 ? begin(message, number) : pieces.set(number, message);
  }
  for (let due; book && (due = waiting.get(next)); waiting.delete(next++)) if (change(book, due)) show();
}).bind(Number(port), host);
