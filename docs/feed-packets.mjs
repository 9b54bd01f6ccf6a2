// What any reader of the binary feed in JavaScript has to do first: check packets, and take their messages out (docs/market-data-feed.md).
// Needs `npm install @noble/hashes`.
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { blake3 } from "@noble/hashes/blake3.js";

/** Calls `take` with channel, number and bytes of each message that comes to one's own address in the venue's relay tree. */
export function listen(address, keyFile, take) {
  const [host, port] = address.split(":"), key = Buffer.from(readFileSync(keyFile, "ascii").trim(), "hex");
  const socket = createSocket("udp4", (packet) => {
    const end = packet.length - 16;
    // What has no seal of the tree is somebody else's.
    if (end < 44 || !packet.subarray(end).equals(blake3(packet.subarray(0, end), { key }).subarray(0, 16))) return;
    const channel = packet.readUInt32LE(4);
    for (let number = packet.readUIntLE(20, 6), at = 44; at < end; number++) {
      const length = packet.readUInt16LE(at);
      take(channel, number, packet.subarray(at + 2, at + 2 + length));
      at += 2 + length;
    }
  });
  socket.bind(Number(port), host);
}
