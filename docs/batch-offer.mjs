// Offers in a batch market; it signs by itself, as docs/batch-transactions.md says. The limit is what one of SELL must bring, in BUY.
// node batch-offer.mjs URL KEYFILE ACCOUNT SEQUENCE MARKET SELL BUY AMOUNT LIMIT
import { createPrivateKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";

const [url, keyFile, account, sequence, name, sell, buy, amount, limit] = process.argv.slice(2);
const get = async (path) => (await fetch(url + path)).json();
const market = (await get("/v1/batches")).batches.find((batch) => batch.name === name), assets = (await get("/v1/assets")).assets;
const asset = (symbol) => assets.find((asset) => asset.symbol === symbol);
const units = (text, decimals) => BigInt(text.split(".")[0] + (text.split(".")[1] ?? "").padEnd(decimals, "0").slice(0, decimals));

const transaction = Buffer.alloc(44);
transaction.writeUInt32LE(Number(account), 0);
transaction.writeBigUInt64LE(BigInt(sequence), 4);
transaction.writeUInt8(2 + 128, 12); // create offer, with a last block: about two minutes from now
transaction.writeUIntLE(Number(market.collecting_block) + Math.ceil(120_000 / market.interval_ms), 13, 5);
transaction.writeUInt16LE(market.market_id, 18);
transaction.writeUInt32LE(asset(sell).asset_id, 20);
transaction.writeUInt32LE(asset(buy).asset_id, 24);
transaction.writeBigUInt64LE(units(amount, asset(sell).decimals), 28);
transaction.writeDoubleLE(Number(limit) * 10 ** (asset(buy).decimals - asset(sell).decimals), 36); // of smallest units
const seed = Buffer.from(readFileSync(keyFile, "ascii").trim().split(".")[1], "base64url");
const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
const signed = Buffer.concat([Buffer.from("walras batch transaction\x01\x00", "latin1"), Buffer.from(market.domain, "hex"), transaction]);
const signature = sign(null, signed, createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
const body = JSON.stringify({ transactions: [Buffer.concat([transaction, signature]).toString("hex")] });
const headers = { "Content-Type": "application/json" };
console.log(JSON.stringify(await (await fetch(`${url}/v1/batches/${name}/transactions`, { method: "POST", headers, body })).json()));
