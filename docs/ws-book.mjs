// Keeps a book over the WebSocket and prints its best levels: node --experimental-websocket ws-book.mjs ws://HOST:PORT INSTRUMENT
// (from Node 22 on without the flag; the same in a browser's page). It connects again when the connection ends.
const [url, instrument] = process.argv.slice(2);
const best = (levels, better) => [...levels.keys()].sort((one, other) => better * (Number(one) - Number(other)))[0] ?? "-";

function read() {
  const socket = new WebSocket(`${url}/v1/ws`), book = { bids: new Map(), asks: new Map() };
  let seq = 0;
  socket.onopen = () => socket.send(JSON.stringify({ op: "subscribe", channel: "book", instrument }));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "error") throw new Error(data);
    if (message.type !== "book") return;
    if (Number(message.feed_seq) !== ++seq) return socket.close(); // A gap: begin again.
    for (const side of ["bids", "asks"]) {
      if (message.kind === "snapshot") book[side].clear();
      for (const [price, size] of message[side]) Number(size) ? book[side].set(price, size) : book[side].delete(price);
    }
    console.log(best(book.bids, -1), best(book.asks, 1));
  };
  socket.onclose = () => setTimeout(read, 500);
}
read();
