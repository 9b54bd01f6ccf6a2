// A client of Walras venues, for browsers and Node: start with `Client`. Types of answers are those of the venue's description,
// edge/api/openapi.yaml; `schema` has all of them.

export { BatchMarket, type BatchOptions, type Collected, type Ends } from "./batch-market.ts";
export { ANY_PRICE, BITS_MAX, BITS_MIN, bitsOfRatio, boughtAtLeast, costOf, limitOfDecimal, partsOf, priceOfBits } from "./batch-price.ts";
export { type Asked, Proofs, type Proven, type Trusted } from "./batch-proofs.ts";
export { Backoff } from "./backoff.ts";
export { type Applied, BookCopy, type BookLevel, type Indication } from "./book.ts";
export { concat, equal, fromBase64Url, fromHex, toBase64Url, toHex } from "./bytes.ts";
export { type Answer, Client, type ClientOptions, type Input, type Page, type PageOf, type Past } from "./client.ts";
export {
  type Changes, type Command, type CommandAnswer, type Exit, type Exits, type NewOrder, type OrderName, type Which, pathSymbol,
} from "./commands.ts";
export * as commands from "./commands.ts";
export { type Exact, type Rounding, divide, formatUnits, parseUnits } from "./decimal.ts";
export {
  BadAnswer, ClockSetBack, DecimalError, type DecimalProblem, KeyError, type KeyProblem, NotConnected, OutcomeUnknown, Refused,
} from "./errors.ts";
export * as light from "./light/index.ts";
export type * from "./schema/index.ts";
export type * as schema from "./schema/index.ts";
export { Session, type SessionOptions } from "./session.ts";
export {
  type Key, type Signed, freshNonce, isEd25519, keyLine, newKey, parseKey, publicKeyHex, sign, signBytes, signedText,
} from "./signing.ts";
export { Stamps } from "./stamps.ts";
export {
  type Socket, type SocketConstructor, Stream, type StreamHandlers, type StreamMessage, type StreamState, type Subscription,
} from "./stream.ts";
export {
  type CancelOffer, type CreateOffer, type CreatePool, type DepositToPool, type IssuedAmount, type KeyOperation, type Operation,
  type Payment, type Place, type PoolName, type PoolRule, type Terms, type WithdrawFromPool, blocksOfTwoMinutes, encodeTransaction,
  lastOfBlocks, placeInChain, signTransaction, signedMessage,
} from "./transactions.ts";
