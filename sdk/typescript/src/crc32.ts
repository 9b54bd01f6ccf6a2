// CRC-32 (ISO-HDLC), as in zip.

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});

/** Of a text of ASCII. */
export function crc32(text: string): number {
  let rest = 0xffff_ffff;
  for (let at = 0; at < text.length; at += 1) rest = (TABLE[(rest ^ text.charCodeAt(at)) & 0xff] ?? 0) ^ (rest >>> 8);
  return (rest ^ 0xffff_ffff) >>> 0;
}
