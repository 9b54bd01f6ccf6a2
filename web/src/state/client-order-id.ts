// Our names for orders: 64-bit numbers, made of the time in milliseconds and some randomness, so that two tabs do not collide.

const RANDOM_BITS = 20n;

export function freshClientOrderId(nowMs: number = Date.now()): string {
  const random = BigInt((crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) >>> 12);
  return ((BigInt(nowMs) << RANDOM_BITS) | random).toString();
}
