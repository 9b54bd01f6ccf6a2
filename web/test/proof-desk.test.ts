// What the page says of the account's offers, balances and shares of pools when the venue proves them, errs, or lies. The proofs come from
// sdk/typescript/test/prover.ts, which a test there checks with the light client.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Balance, Batch, BatchBlock, Key, Offer, PoolShare } from "walras";
import { client } from "../src/api/client.ts";
import type { BatchDesk } from "../src/state/batch-desk.ts";
import { BatchMarket } from "../src/state/batch-market.ts";
import { OwnOffers } from "../src/state/own-offers.ts";
import { ProofDesk } from "../src/state/proof-desk.ts";
import { Prover } from "../../sdk/typescript/test/prover.ts";

const { fetch } = globalThis;
afterEach(() => {
  globalThis.fetch = fetch;
});

const ASSETS = ["USD", "EUR"];
const ACCOUNT = 1;
const key: Key = { id: "ed_test", secret: "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM" };
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const OFFER: Offer = {
  batch: "main", sequence: "7", sell: "EUR", buy: "USD", amount: "10.00", stated_price: "1.08", stated_bits: "0", limit_bits: "0", tie: "3",
  block: "7",
};

const POOL = { account: 0, sequence: 4n };
const SHARE: PoolShare = {
  batch: "main", account_id: POOL.account, sequence: String(POOL.sequence), first: "EUR", second: "USD", shares: "500", all_shares: "800",
  worth: ["1.00", "1.00"],
};

/** The venue: what it has, what it shows, and what it proves after each block. */
class Venue {
  readonly offers = new OwnOffers();
  readonly balances = new Map<string, Balance>();
  readonly market: BatchMarket;
  readonly desk: ProofDesk;
  held = 90_000n;
  standing = 1_000n;
  shares = 500n;
  readonly shown = new Map<string, PoolShare>();
  prover: Prover | null = null;
  #number = 7n;

  constructor() {
    const info = { market_id: 0, name: "main", assets: ASSETS, numeraire: "USD", collected: 0, closed_block: null, last_block: null };
    this.market = new BatchMarket(info as unknown as Batch, 0);
    const signer = { value: { state: "ready", key, own: client.withKey(key), accountId: ACCOUNT } };
    const asset = (symbol: string): { asset_id: number } => ({ asset_id: ASSETS.indexOf(symbol) });
    const pools = { shares: { value: this.shown } };
    const desk = { market: { value: this.market }, signer, offers: this.offers, asset, decimals: () => 2, pools };
    this.desk = new ProofDesk(desk as unknown as BatchDesk, () => this.balances);
    this.show("900.00", "10.00");
    this.offers.apply({ type: "account", kind: "snapshot", offers: [OFFER] });
    globalThis.fetch = (input) => Promise.resolve(this.#answer(String(input)));
  }

  show(available: string, reserved: string): void {
    this.balances.set("EUR", { asset: "EUR", available, reserved });
  }

  /** `lost` is a block that the page does not hear of. */
  block(more: { parent?: Uint8Array; lost?: boolean } = {}): void {
    this.#number += 1n;
    const own = [{ asset: 1, available: this.held, reserved: this.standing }];
    const accounts = [0, ACCOUNT].map((account) => ({ account, publicKey: null, last: 7n, balances: account === ACCOUNT ? own : [] }));
    const offers = this.standing === 0n ? [] : [{
      pair: ASSETS.indexOf("EUR") * ASSETS.length, limit: 0n, tie: 3n, account: ACCOUNT, sequence: 7n, amount: this.standing, stated: 0n,
    }];
    const parent = more.parent ?? this.prover?.block.hash ?? new Uint8Array(32);
    this.prover = new Prover({ market: 0, number: this.#number, parent, transactions: 1, assets: ASSETS.length }, accounts, offers, [
      {
        ...POOL, first: 1, second: 0, feePpm: 0, reserves: [9_000n, 9_700n], shares: 300n + this.shares,
        providers: [{ account: 0, shares: 300n }, { account: ACCOUNT, shares: this.shares }],
      },
    ]);
    if (more.lost) return;
    const block = { block: String(this.#number), state_root: hex(this.prover.block.hash), prices: null } as unknown as BatchBlock;
    const market = { batch: "main", phase: "open" as const, interval_ms: 2_000, assets: ["USD", "EUR"] };
    this.market.apply({ type: "batch", kind: "update", ...market, collected: 0, closed_block: null, blocks: [block] }, 0);
  }

  marks(): (string | undefined)[] {
    const [offer] = this.offers.list("main");
    return [this.desk.ofBalance("EUR")?.state, offer && this.desk.ofOffer(offer)?.state];
  }

  #answer(path: string): Response {
    const { prover } = this;
    const statement = path.includes("/proofs/account/") ? prover?.account(ACCOUNT)
      : path.includes("/proofs/shares?account_id=0&sequence=4") ? prover?.pool(POOL.account, POOL.sequence, ACCOUNT)
      : prover?.offer({ pair: ASSETS.length, limit: 0n, tie: 3n, account: ACCOUNT, sequence: 7n });
    if (!prover || !statement) return Response.json({ error: { code: 109, name: "NotFound", message: "" } }, { status: 404 });
    const { header, roots } = prover.block;
    return Response.json({ block: String(this.#number), light_header: hex(header), light_roots: hex(roots), statement: hex(statement) });
  }
}

test("what is shown and proven is marked, and the mark goes when something else is shown", async () => {
  const venue = new Venue();
  venue.block();
  assert.deepEqual(venue.marks(), [undefined, undefined]);
  await venue.desk.check();
  assert.deepEqual(venue.marks(), ["checked", "checked"]);
  assert.equal(venue.desk.last?.root, venue.market.last?.state_root);
  venue.show("899.00", "10.00");
  assert.deepEqual(venue.marks(), [undefined, "checked"], "another number was not checked");
});

test("what differs twice in a row is marked: after the first time an update may be on its way", async () => {
  const venue = new Venue();
  venue.held = 89_999n;
  venue.standing = 999n;
  venue.block();
  await venue.desk.check();
  assert.deepEqual(venue.marks(), [undefined, undefined]);
  venue.block();
  await venue.desk.check();
  assert.deepEqual(venue.marks(), ["differs", "differs"]);
  assert.ok(venue.desk.isContradicted());
  [venue.held, venue.standing] = [90_000n, 1_000n];
  venue.block();
  await venue.desk.check();
  assert.deepEqual(venue.marks(), ["checked", "checked"]);
  assert.ok(!venue.desk.isContradicted());
});

test("shares of a pool are checked like offers, and those that were not proven have no mark", async () => {
  const venue = new Venue();
  const mark = (): string | undefined => {
    const [share] = venue.shown.values();
    return share && venue.desk.ofShare(share)?.state;
  };
  venue.block();
  await venue.desk.check();
  assert.equal(mark(), undefined, "none is shown");
  venue.shown.set("main 0:4", SHARE);
  await venue.desk.check();
  assert.equal(mark(), "checked");
  venue.shown.set("main 0:4", { ...SHARE, shares: "501" });
  assert.equal(mark(), undefined, "another number was not checked");
  await venue.desk.check();
  assert.equal(mark(), undefined, "an update may be on its way");
  venue.block();
  await venue.desk.check();
  assert.equal(mark(), "differs");
  assert.ok(venue.desk.isContradicted());
  venue.shares = 501n;
  venue.block();
  await venue.desk.check();
  assert.equal(mark(), "checked");
  // Those of another market are not asked for here.
  venue.shown.clear();
  venue.shown.set("other 0:4", { ...SHARE, batch: "other" });
  await venue.desk.check();
  assert.equal(mark(), undefined);
});

test("a header that does not hash to the root in the feed is reported until one does", async () => {
  const venue = new Venue();
  venue.block();
  await venue.desk.check();
  // The feed has one root, and the venue proves another block.
  const { state_root } = venue.market.last as BatchBlock;
  (venue.market.last as BatchBlock).state_root = state_root.replace(/^../, (byte) => (byte === "00" ? "01" : "00"));
  await venue.desk.check();
  assert.equal(venue.desk.broken?.code, 3);
  venue.block({ parent: Buffer.from((venue.market.last as BatchBlock).state_root, "hex") });
  await venue.desk.check();
  assert.equal(venue.desk.broken, null);
});

test("a block that does not name the one before it is reported", async () => {
  const venue = new Venue();
  venue.block();
  venue.block({ parent: new Uint8Array(32).fill(5) });
  await venue.desk.check();
  assert.equal(venue.desk.broken?.code, 7);
  assert.deepEqual(venue.marks(), [undefined, undefined]);
});

test("nothing is marked or reported for a block that is not in the feed, or where the venue can prove nothing now", async () => {
  const venue = new Venue();
  await venue.desk.check();
  venue.block();
  venue.block({ lost: true });
  await venue.desk.check();
  assert.deepEqual([venue.marks(), venue.desk.last, venue.desk.broken], [[undefined, undefined], null, null]);
});
