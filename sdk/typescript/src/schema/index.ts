// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal
// strings, times and 64-bit ids strings of digits.

export * from "./socket.ts";
export * from "./batches.ts";
export * from "./machines.ts";
export * from "./operators.ts";
export * from "./trading.ts";
export * from "./operations.ts";
