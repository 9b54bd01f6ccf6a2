// The light client of batch markets: docs/light-client.md.

export { LightError, unhex } from "./bytes.ts";
export {
  type AccountState, type Balance, LightBlock, type Offer, type OfferKey, type Outcome, type Pool, type Trade, openChain,
} from "./block.ts";
