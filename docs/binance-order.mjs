// Enters an order in the dialect of Binance's Spot API, shows it, and cancels it (docs/binance.md). Needs Node and an hmac-sha256 key:
// node binance-order.mjs http://127.0.0.1:7075 bot.key BTCUSD BUY 0.01 29000
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

const [url, keyFile, symbol, side, quantity, price] = process.argv.slice(2);
const [apiKey, secret] = readFileSync(keyFile, "ascii").trim().split(".");

async function ask(method, path, parameters, headers = {}) {
  const answer = await fetch(`${url}/api/v3/${path}?${parameters}`, { method, headers });
  const said = await answer.json();
  if (!answer.ok) throw new Error(`${said.code}: ${said.msg}`);
  return said;
}

/** Each text is taken once, and its timestamp is at most 5 s old. */
function signed(method, path, parameters) {
  const text = new URLSearchParams({ ...parameters, recvWindow: "5000", timestamp: String(Date.now()) }).toString();
  const signature = createHmac("sha256", secret).update(text).digest("hex");
  return ask(method, path, `${text}&signature=${signature}`, { "X-MBX-APIKEY": apiKey });
}

const placed = await signed("POST", "order", { symbol, side, type: "LIMIT", timeInForce: "GTC", quantity, price });
console.log("placed", placed.orderId, placed.status);
console.log("best bid", (await ask("GET", "depth", `symbol=${symbol}&limit=5`)).bids[0]);
console.log("open", (await signed("GET", "openOrders", { symbol })).map((order) => order.orderId));
console.log("cancelled", (await signed("DELETE", "order", { symbol, orderId: placed.orderId })).status);
