// Keeps a book by FIX, and prints the best bid and offer: node fix-book.mjs HOST:PORT KEYFILE SYMBOL, with an hmac-sha256 key.
import { readFileSync } from "node:fs";
import { connect } from "node:net";

const [address, keyFile, symbol] = process.argv.slice(2), [host, port] = address.split(":"), venue = connect(Number(port), host);
const [key, secret] = readFileSync(keyFile, "ascii").trim().split(".");
let seq = 0, rest = "", book = [new Map(), new Map()];

function send(kind, ...fields) {
  const now = new Date().toISOString().replaceAll("-", "").replace("T", "-").slice(0, -1);
  const all = [`35=${kind}`, `34=${++seq}`, "49=READER", `52=${now}`, "56=WALRAS-MD", ...fields];
  const body = all.map((field) => `${field}\x01`).join(""), text = `8=FIX.4.4\x019=${body.length}\x01${body}`;
  venue.write(`${text}10=${String(Buffer.from(text).reduce((sum, byte) => sum + byte, 0) % 256).padStart(3, "0")}\x01`);
}

function hear(fields) {
  const { 35: kind, 58: text, 112: asked } = Object.fromEntries(fields), entry = {};
  if (kind === "5" || kind === "Y") throw new Error(text);
  if (kind === "0" || kind === "1") send("0", ...(asked ? [`112=${asked}`] : []));
  if (kind === "W") book = [new Map(), new Map()];
  for (const [tag, value] of kind === "W" || kind === "X" ? fields : []) {
    entry[tag] = value; // 290 is the last field of an entry. A level that is gone (279=2) has no size.
    if (tag === "290") book[entry[269]][entry[279] === "2" ? "delete" : "set"](entry[270], entry[271]);
  }
  console.log(...book.map((side, at) => [...side.keys()].map(Number).sort((a, b) => (at ? a - b : b - a))[0] ?? "-"));
}

send("A", "98=0", "108=30", "141=Y", `553=${key}`, `554=${secret}`);
send("V", "262=book", "263=1", "264=10", "265=1", "267=2", "269=0", "269=1", "146=1", `55=${symbol}`);
for await (const bytes of venue) {
  const messages = (rest + bytes).split(/\x0110=\d{3}\x01/);
  rest = messages.pop();
  for (const message of messages) hear(message.split("\x01").map((field) => field.split(/=(.*)/)));
}
