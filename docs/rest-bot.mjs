// Places an order once, whatever happens, and shows it: docs/rest.md. Arguments: URL, key file, instrument, name, side, size, price.
import { createHash, createHmac, createPrivateKey, randomBytes, sign } from "node:crypto";
import { readFileSync } from "node:fs";

const [url, keyFile, instrument, name, side, size, price] = process.argv.slice(2);
const [key, secret] = readFileSync(keyFile, "ascii").trim().split(".");
const bytes = Buffer.from(secret, "base64url");
const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), bytes]);
const seal = (text) => key.startsWith("hm_") ? createHmac("sha256", bytes).update(text).digest("base64url")
  : sign(null, Buffer.from(text), createPrivateKey({ key: der, format: "der", type: "pkcs8" })).toString("base64url");

async function call(method, path, body) {
  for (const data = body ? JSON.stringify(body) : ""; ; await new Promise((resolve) => setTimeout(resolve, 500))) {
    try {
      const from = BigInt((await (await fetch(`${url}/v1/status`)).json()).accepts_timestamps_from_ns);
      const now = BigInt(Date.now()) * 1_000_000n, stamp = String(now > from ? now : from), nonce = randomBytes(12).toString("base64url");
      const text = ["walras-v1", method, path, stamp, nonce, createHash("sha256").update(data).digest("hex")].join("\n");
      const headers = { "Walras-Key": key, "Walras-Timestamp": stamp, "Walras-Nonce": nonce, "Walras-Signature": seal(text) };
      const answer = await fetch(url + path, { method, headers, body: data || undefined }), json = await answer.json();
      if (answer.ok) return json;
      if (json.error.code !== 105 && ![429, 503].includes(answer.status)) throw new RangeError(JSON.stringify(json.error));
    } catch (e) { if (e instanceof RangeError) throw e; } // no answer: again, under the same number it takes effect once
  }
}
// The session is of this name alone, so the order is always its number 1: also where the program is started again.
const token = BigInt("0x" + createHash("sha256").update(name).digest("hex").slice(0, 14)).toString();
const { session } = await call("POST", "/v1/sessions", { token });
const order = { instrument, client_order_id: name, side, type: "limit", size, price };
await call("POST", `/v1/orders?session=${session}&session_seq=1`, order);
console.log(JSON.stringify(await call("GET", `/v1/orders/${instrument}/${encodeURIComponent(name)}`)));
