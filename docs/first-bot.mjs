// Quotes both sides of a market with the client of sdk/typescript: docs/first-bot.md. Arguments: URL, key file, instrument, size.
// It runs on Node 22, and on Node 20 with the flag --experimental-websocket.
import { readFileSync } from "node:fs";
import { Client, Refused, commands, formatUnits, parseUnits } from "walras";

const [url, keyFile, instrument, size] = process.argv.slice(2);
const client = new Client({ url, key: readFileSync(keyFile, "ascii") });
const { tick_size, price_decimals: decimals } = await client.instrument(instrument);
const tick = parseUnits(tick_size, decimals), stream = await client.stream().open(); // connects again by itself
await stream.signIn();
const session = await client.session({ stream }); // a command takes effect once, also where the venue restarts
const book = await stream.book(instrument); // each message is held against its number and its checksum
await stream.subscribe({ channel: "reports" }); // what happens to the account, without a gap over lost connections
setInterval(() => client.cancelAfter(10_000).catch(() => {}), 2_000); // if this program dies, the venue cancels its orders
process.once("SIGINT", async () => (await session.massCancel({ instrument }), console.log("orders cancelled"), process.exit()));
console.log("signed in");

let quoted = 0n;
for await (const message of stream) {
  for (const { event, side, size, price, fee } of message.type === "reports" ? message.reports : [])
    if (event === "filled") console.log(`${side} ${size} at ${price}, fee ${fee}`);
  const bid = book.bestBid()?.price ?? 0n, ask = book.bestAsk()?.price ?? 0n, middle = (bid + ask) / 2n / tick * tick;
  if (!book.isLive || !bid || !ask || (middle === quoted && message.type !== "connected")) continue;
  quoted = middle;
  const order = (side, price) => commands.order({ instrument, side, size, price: formatUnits(price, decimals), post_only: "reject" });
  const orders = [order("buy", middle - 4n * tick), order("sell", middle + 4n * tick)];
  for (const result of await session.many([commands.massCancel({ instrument }), ...orders])) {
    if (result instanceof Refused) console.log(`${result}`);
  }
}
