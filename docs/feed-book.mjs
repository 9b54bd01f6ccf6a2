// Keeps a book by the binary feed and prints its best levels, in ticks (docs/market-data-feed.md). feed-packets.mjs reads the packets:
// node feed-book.mjs OWN_ADDRESS TREE_KEY_FILE INSTRUMENT_ID. It asks for nothing: what is lost comes with the next snapshot.
import { listen } from "./feed-packets.mjs";

const [address, keyFile, instrument] = process.argv.slice(2);
const own = 0x02000000 + Number(instrument), snapshots = 0x02ffffff; // channels
const waiting = new Map(), pieces = new Map(); // their messages, by number
const best = (levels, better) => (levels.size > 0 ? Math[better](...levels.keys()) : "-");
let book, next = 0; // bids and asks, and the number of the message that is to come

function change(sides, message) {
  if (message[1] !== 20) return; // no LevelChanged
  const levels = sides[message[19]], price = message.readIntLE(20, 6), shown = message.readUIntLE(28, 6);
  shown > 0 ? levels.set(price, shown) : levels.delete(price);
}

function begin(ended, number) {
  let piece, sides = [new Map(), new Map()], from = ended.readUIntLE(23, 6);
  while ((piece = pieces.get(--number)) && piece[1] !== 40) change(sides, piece); // back to where it began
  pieces.clear();
  if (!piece || ended.readUInt32LE(19) !== own || from < next) return; // not whole, of another market, or older
  [book, next] = [sides, from];
  for (const old of waiting.keys()) if (old < next) waiting.delete(old);
  console.log(best(book[0], "max"), best(book[1], "min"));
}

listen(address, keyFile, (channel, number, message) => {
  if (channel === own && number >= next && waiting.size < 10_000) waiting.set(number, message);
  if (channel === snapshots) message[1] === 41 ? begin(message, number) : pieces.set(number, message);
  for (let due; book && (due = waiting.get(next)); waiting.delete(next++)) {
    change(book, due);
    if (due[2] & 1) console.log(best(book[0], "max"), best(book[1], "min")); // after the last message of an entry of the log
  }
});
