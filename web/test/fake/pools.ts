// The pools of the fake batch market: some of other accounts, and what one's own transactions open, add and take out.

import {
  type CreatePool, type DepositToPool, formatUnits, type OfferUpdate, type Pool, type PoolName, type PoolRule, type PoolShare,
  type WithdrawFromPool,
} from "walras";
import type { ProvenPool } from "../../../sdk/typescript/test/prover.ts";

interface FakePool {
  name: PoolName;
  symbols: [string, string];
  rule: PoolRule;
  feePpm: number;
  reserves: [bigint, bigint];
  shares: bigint;
  /** By account. */
  providers: Map<number, bigint>;
}

export interface PoolHost {
  symbol(assetId: number): string;
  decimals(symbol: string): number;
  spendable(symbol: string): bigint;
  add(symbol: string, units: bigint): void;
}

type Drop = NonNullable<OfferUpdate["reason"]>;
export type PoolOperation = CreatePool | DepositToPool | WithdrawFromPool;

const DROPS = {
  unknown: {
    code: 20, name: "UnknownPool",
    message: "there is no such pool in the market: name the account and the number of the transaction that created it",
  },
  small: { code: 22, name: "PoolTooSmall", message: "the pool would begin with too little: give at least 1000 units of each asset" },
  deposit: { code: 23, name: "DepositTooSmall", message: "what it adds to the pool comes to no share of it: add more of both assets" },
  shares: {
    code: 24, name: "SharesOverdrawn",
    message: "the account's transactions give back more shares of the pool than it had when the block began: give back fewer",
  },
  overdraft: {
    code: 18, name: "Overdraft",
    message: "the account's transactions spend more than it had available when the block began: spend less, or deposit before",
  },
} satisfies Record<string, Drop>;

const OTHERS = 0;

export class FakePools {
  readonly #host: PoolHost;
  #pools: FakePool[];

  constructor(host: PoolHost) {
    this.#host = host;
    const pool = (sequence: bigint, symbols: [string, string], rule: PoolRule, feePpm: number, reserves: [bigint, bigint]): FakePool => {
      const shares = reserves[0] < reserves[1] ? reserves[0] : reserves[1];
      return { name: { account: OTHERS, sequence }, symbols, rule, feePpm, reserves, shares, providers: new Map([[OTHERS, shares]]) };
    };
    this.#pools = [
      pool(11n, ["EUR", "USD"], { rule: "constant_product" }, 3_000, [92_400_000n, 100_087_680n]),
      pool(12n, ["BTC", "USD"], { rule: "weighted", weights: [80, 20] }, 1_000, [260_482_000n, 199_993_400n]),
      pool(15n, ["EUR", "CHF"], { rule: "stable_swap", amplification: 200 }, 100, [40_512_000n, 39_870_550n]),
    ];
  }

  list(): Pool[] {
    return this.#pools.map((pool) => ({
      ...this.#head(pool), rule: pool.rule.rule, ...(pool.rule.rule === "weighted" ? { weights: pool.rule.weights } : {}),
      ...(pool.rule.rule === "stable_swap" ? { amplification: pool.rule.amplification } : {}),
      fee_ppm: pool.feePpm, reserves: this.#amounts(pool, pool.reserves), shares: String(pool.shares),
    }));
  }

  /** As a proof has them; `assetOf` numbers the market's assets. */
  proven(assetOf: (symbol: string) => number): ProvenPool[] {
    return this.#pools.map(({ name, symbols: [first, second], feePpm, reserves, shares, providers }) => ({
      ...name, first: assetOf(first), second: assetOf(second), feePpm, reserves: [...reserves], shares,
      providers: [...providers].filter(([, had]) => had > 0n).map(([account, had]) => ({ account, shares: had })),
    }));
  }

  sharesOf(account: number): PoolShare[] {
    return this.#pools.flatMap((pool) => {
      const shares = pool.providers.get(account) ?? 0n;
      if (shares === 0n) return [];
      const worth = pool.reserves.map((reserve) => (reserve * shares) / pool.shares) as [bigint, bigint];
      return [{ ...this.#head(pool), shares: String(shares), all_shares: String(pool.shares), worth: this.#amounts(pool, worth) }];
    });
  }

  /** Carries the operation out, or returns why not. */
  enter(account: number, sequence: bigint, asked: PoolOperation): Drop | null {
    if (asked.operation === "create_pool") return this.#create({ account, sequence }, asked);
    const pool = this.#pools.find(({ name }) => name.account === asked.pool.account && name.sequence === asked.pool.sequence);
    if (!pool) return DROPS.unknown;
    const had = pool.providers.get(account) ?? 0n;
    if (asked.operation === "withdraw_from_pool") {
      if (asked.shares > had) return DROPS.shares;
      pool.symbols.forEach((symbol, at) => {
        const part = ((pool.reserves[at] ?? 0n) * asked.shares) / pool.shares;
        pool.reserves[at] = (pool.reserves[at] ?? 0n) - part;
        this.#host.add(symbol, part);
      });
      pool.shares -= asked.shares;
      pool.providers.set(account, had - asked.shares);
      if (pool.shares === 0n) this.#pools = this.#pools.filter((each) => each !== pool);
      return null;
    }
    const bought = asked.amounts.map((amount, at) => (amount * pool.shares) / (pool.reserves[at] ?? 1n));
    const shares = bought.reduce((least, each) => (each < least ? each : least));
    if (shares === 0n) return DROPS.deposit;
    if (asked.amounts.some((amount, at) => amount > this.#host.spendable(pool.symbols[at] ?? ""))) return DROPS.overdraft;
    pool.symbols.forEach((symbol, at) => {
      const reserve = pool.reserves[at] ?? 0n;
      const cost = (reserve * shares + pool.shares - 1n) / pool.shares;
      pool.reserves[at] = reserve + cost;
      this.#host.add(symbol, -cost);
    });
    pool.shares += shares;
    pool.providers.set(account, had + shares);
    return null;
  }

  #create(name: PoolName, asked: CreatePool): Drop | null {
    const symbols: [string, string] = [this.#host.symbol(asked.first), this.#host.symbol(asked.second)];
    if (asked.amounts.some((amount) => amount < 1_000n)) return DROPS.small;
    if (asked.amounts.some((amount, at) => amount > this.#host.spendable(symbols[at] ?? ""))) return DROPS.overdraft;
    asked.amounts.forEach((amount, at) => this.#host.add(symbols[at] ?? "", -amount));
    const [first, second] = asked.amounts;
    const shares = first < second ? first : second;
    const rule: PoolRule = asked.rule === "weighted" ? { rule: "weighted", weights: asked.weights }
      : asked.rule === "stable_swap" ? { rule: "stable_swap", amplification: asked.amplification } : { rule: "constant_product" };
    const providers = new Map([[name.account, shares]]);
    this.#pools.push({ name, symbols, rule, feePpm: asked.fee_ppm, reserves: [first, second], shares, providers });
    return null;
  }

  #head({ name, symbols }: FakePool): Pick<Pool, "batch" | "account_id" | "sequence" | "first" | "second"> {
    return { batch: "main", account_id: name.account, sequence: String(name.sequence), first: symbols[0], second: symbols[1] };
  }

  #amounts({ symbols }: FakePool, [first, second]: [bigint, bigint]): [string, string] {
    return [formatUnits(first, this.#host.decimals(symbols[0])), formatUnits(second, this.#host.decimals(symbols[1]))];
  }
}
