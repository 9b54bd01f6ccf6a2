// Enters an order by FIX, cancels it, and prints what it hears (docs/fix.md). Needs Node and an hmac-sha256 key:
// node fix-order.mjs 127.0.0.1:7373 bot.key BTC/USD 29000
import { readFileSync } from "node:fs";
import { connect } from "node:net";

const [address, keyFile, symbol, price] = process.argv.slice(2), [host, port] = address.split(":");
const [key, secret] = readFileSync(keyFile, "ascii").trim().split(".");
const venue = connect(Number(port), host), said = { A: "logged on", 8: "report", 9: "not cancelled", 5: "logged out" };
const now = () => new Date().toISOString().replaceAll("-", "").replace("T", "-").slice(0, -1);
let seq = 0, rest = "";

function send(kind, ...fields) {
  const all = [`35=${kind}`, `34=${++seq}`, "49=EXAMPLE", `52=${now()}`, "56=WALRAS", ...fields];
  const body = all.map((field) => `${field}\x01`).join(""), text = `8=FIX.4.4\x019=${body.length}\x01${body}`;
  const sum = Buffer.from(text).reduce((total, byte) => total + byte, 0) % 256;
  venue.write(`${text}10=${String(sum).padStart(3, "0")}\x01`);
}

function hear(message) {
  if (message[35] in said) console.log(said[message[35]], message[150] ?? "", message[58] ?? "");
  if (["4", "8"].includes(message[150]) || message[35] === "9") send("5");
  if (message[35] === "5") venue.end();
}

venue.on("data", (bytes) => {
  rest += bytes;
  for (let end; (end = rest.search(/\x0110=\d{3}\x01/)) >= 0; rest = rest.slice(end + 8))
    hear(Object.fromEntries(rest.slice(0, end).split("\x01").map((field) => field.split(/=(.*)/))));
});
send("A", "98=0", "108=30", "141=Y", `553=${key}`, `554=${secret}`);
send("D", "11=first", `55=${symbol}`, "54=1", `60=${now()}`, "38=1", "40=2", `44=${price}`, "59=1");
send("F", "11=second", "41=first", `55=${symbol}`, "54=1", `60=${now()}`);
