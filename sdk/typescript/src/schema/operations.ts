// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal
// strings, times and 64-bit ids strings of digits.

import type {
  BatchAccountProof, BatchBlockProof, BatchBlocks, BatchCreated, BatchDemand, BatchHeader, BatchOfferProof, BatchPhaseRequest,
  BatchRequest, BatchResults, BatchSharesProof, BatchTransactionProof, BatchTransactions, Batches, Offers, PoolShares, Pools,
  TransactionOutcomes,
} from "./batches.ts";
import type { Clock, ClusterView, FairAccessView, Latency, Shards } from "./machines.ts";
import type {
  AccountAnswer, AccountKeyAnswer, AccountKeyRequest, AccountRequest, AccountStatusRequest, Accounts, AddReplicaRequest,
  AdminAccount, AssetAnswer, AssetRequest, Done, EngineVersionRequest, FaultsRequest, Fees, FeesAnswer, FeesRequest,
  InstrumentAnswer, InstrumentRequest, InstrumentShardRequest, IssuerRequest, KeyAnswer, KeyRequest, KeyRevoked, Keys,
  LimitsRequest, OperatorAnswer, PhaseRequest, ReplicaRequest, SnapshotAnswer, TransferAnswer, TransferOutRequest, TransferRequest,
  Transfers, TransfersInAnswer, TransfersInRequest,
} from "./operators.ts";
import type {
  Account, AccountFeeRequest, AmendRequest, Assets, Auction, Book, BookOrders, CancelAfter, CancelAfterRequest, Candles,
  ClosedOrders, Fills, Instruments, Interval, ManyAnswer, ManyRequest, MassCancelAnswer, OrderAnswer, OrderRequest, OrderState,
  Orders, PastBook, PastDays, PastTrades, RepeatedAnswer, Reports, Session, SessionRequest, Sessions, Side, Status, Ticker, Time,
  Trades,
} from "./trading.ts";

/** What each operation of REST takes and answers. */
export interface Operations {
  /** What the venue is doing. */
  getStatus: { path: undefined; query: undefined; body: undefined; answer: Status };
  /** The venue's clock, to sign by. */
  getTime: { path: undefined; query: undefined; body: undefined; answer: Time };
  /** The venue's time at this node, and how far off it may be. */
  getClock: { path: undefined; query: undefined; body: undefined; answer: Clock };
  /** How long orders and market data take at this node, stage by stage. */
  getLatency: { path: undefined; query: undefined; body: undefined; answer: Latency };
  /** All assets. */
  getAssets: { path: undefined; query: undefined; body: undefined; answer: Assets };
  /** All instruments. */
  getInstruments: { path: undefined; query: undefined; body: undefined; answer: Instruments };
  /** The book, best price first. */
  getInstrumentsInstrumentBook: { path: { instrument: string }; query: { depth?: number }; body: undefined; answer: Book };
  /** The book by order: each displayed order, in the order in which they stand. */
  getInstrumentsInstrumentBookOrders: {
    path: { instrument: string };
    query: { limit?: number };
    body: undefined;
    answer: BookOrders;
  };
  /** The phase, what an auction would trade now, and how the latest one ended. */
  getInstrumentsInstrumentAuction: { path: { instrument: string }; query: undefined; body: undefined; answer: Auction };
  /** An instrument at a glance. */
  getInstrumentsInstrumentTicker: { path: { instrument: string }; query: undefined; body: undefined; answer: Ticker };
  /** The last trades, newest first. */
  getInstrumentsInstrumentTrades: {
    path: { instrument: string };
    query: { limit?: number; before?: string };
    body: undefined;
    answer: Trades;
  };
  /** The last candles, oldest first. */
  getInstrumentsInstrumentCandles: {
    path: { instrument: string };
    query: { interval?: Interval; limit?: number };
    body: undefined;
    answer: Candles;
  };
  /** Trades of the past, oldest first. */
  getHistoryTrades: {
    path: undefined;
    query: { instrument: string; from?: string; to?: string; limit?: number; cursor?: string };
    body: undefined;
    answer: PastTrades;
  };
  /** The last picture of a book at a time of the past. */
  getHistoryBooks: { path: undefined; query: { instrument: string; at?: string }; body: undefined; answer: PastBook };
  /** The archive's days, oldest first, and how far it is. */
  getHistoryDays: { path: undefined; query: undefined; body: undefined; answer: PastDays };
  /** All batch markets. */
  getBatches: { path: undefined; query: undefined; body: undefined; answer: Batches };
  /** The last blocks, newest first. */
  getBatchesBatchBlocks: { path: { batch: string }; query: { limit?: number }; body: undefined; answer: BatchBlocks };
  /** All that a block says, with all prices and trades. */
  getBatchesBatchBlocksBlockHeader: {
    path: { batch: string; block: string };
    query: undefined;
    body: undefined;
    answer: BatchHeader;
  };
  /** Supply and demand of a pair around the last price. */
  getBatchesBatchDemand: {
    path: { batch: string };
    query: { sell: string; buy: string; span_ppm?: number };
    body: undefined;
    answer: BatchDemand;
  };
  /** Sends signed transactions for the next batch. */
  postBatchesBatchTransactions: { path: { batch: string }; query: undefined; body: BatchTransactions; answer: BatchResults };
  /** A block in short, with the proof of a price or of a trade. */
  getBatchesBatchProofsBlock: {
    path: { batch: string };
    query: { block?: string; asset?: string; sell?: string; buy?: string };
    body: undefined;
    answer: BatchBlockProof;
  };
  /** Proves what a block did with a transaction of the account or with the offer that it created. */
  getBatchesBatchProofsTransactionSequence: {
    path: { batch: string; sequence: string };
    query: { block?: string };
    body: undefined;
    answer: BatchTransactionProof;
  };
  /** Proves what an account was after the market's last block. */
  getBatchesBatchProofsAccountAccountId: {
    path: { batch: string; account_id: number };
    query: undefined;
    body: undefined;
    answer: BatchAccountProof;
  };
  /** Proves that an offer stood after the market's last block or that it did not. */
  getBatchesBatchProofsOffer: {
    path: { batch: string };
    query: { account_id: number; sequence: string; sell: string; buy: string; limit_bits: string; tie: string };
    body: undefined;
    answer: BatchOfferProof;
  };
  /** A market's pools, in the order of their names. */
  getBatchesBatchPools: { path: { batch: string }; query: undefined; body: undefined; answer: Pools };
  /** Proves what a pool had after the market's last block or that there was none. */
  getBatchesBatchProofsPool: {
    path: { batch: string };
    query: { account_id: number; sequence: string };
    body: undefined;
    answer: BatchOfferProof;
  };
  /** Proves how many shares of a pool the key's account had after the market's last block. */
  getBatchesBatchProofsShares: {
    path: { batch: string };
    query: { account_id: number; sequence: string };
    body: undefined;
    answer: BatchSharesProof;
  };
  /** The account's shares of pools, and what they are worth. */
  getShares: { path: undefined; query: undefined; body: undefined; answer: PoolShares };
  /** The account's offers that stand in batch markets, oldest first. */
  getOffers: { path: undefined; query: { limit?: number; cursor?: string }; body: undefined; answer: Offers };
  /** What came of the account's last transactions in batch markets, the one collected last first. */
  getTransactions: { path: undefined; query: { limit?: number; sequence?: string }; body: undefined; answer: TransactionOutcomes };
  /** The account of the key. */
  getAccount: { path: undefined; query: undefined; body: undefined; answer: Account };
  /** The account's transfers to other shards that are in transit. */
  getAccountTransfers: { path: undefined; query: undefined; body: undefined; answer: Transfers };
  /** Moves available funds of the account to another shard. */
  postAccountTransfers: { path: undefined; query: undefined; body: TransferOutRequest; answer: TransferAnswer };
  /** The shards of the venue, whose the instruments are, and what is in transit. */
  getShards: { path: undefined; query: undefined; body: undefined; answer: Shards };
  /** Open orders, by instrument, then in the order in which they entered. */
  listOpenOrders: {
    path: undefined;
    query: { instrument?: string; limit?: number; cursor?: string };
    body: undefined;
    answer: Orders;
  };
  /** Enters an order. */
  placeOrder: {
    path: undefined;
    query: { session?: string; session_seq?: string };
    body: OrderRequest;
    answer: OrderAnswer | RepeatedAnswer;
  };
  /** Cancels all open orders, or some. */
  cancelAll: {
    path: undefined;
    query: { instrument?: string; side?: Side; session?: string; session_seq?: string };
    body: undefined;
    answer: MassCancelAnswer | RepeatedAnswer;
  };
  /** Enters, amends and cancels several orders, each by itself. */
  sendMany: { path: undefined; query: { session?: string; session_seq?: string }; body: ManyRequest; answer: ManyAnswer };
  /** When the account's orders are cancelled. */
  getCancelAfter: { path: undefined; query: undefined; body: undefined; answer: CancelAfter };
  /** Dead man's switch: cancels all orders of the account after a time, unless it is sent again before. */
  cancelAfter: {
    path: undefined;
    query: { session?: string; session_seq?: string };
    body: CancelAfterRequest;
    answer: CancelAfter;
  };
  /** Orders of the account that have ended, newest first. */
  listClosedOrders: {
    path: undefined;
    query: {
      instrument?: string;
      order_id?: string;
      client_order_id?: string;
      since?: string;
      until?: string;
      after?: string;
      limit?: number;
      cursor?: string;
    };
    body: undefined;
    answer: ClosedOrders;
  };
  /** One order, open or ended. */
  getOrder: {
    path: { instrument: string; client_order_id: string };
    query: { by?: "client_order_id" | "order_id" };
    body: undefined;
    answer: OrderState;
  };
  /** Cancels an order. */
  cancelOrder: {
    path: { instrument: string; client_order_id: string };
    query: { session?: string; session_seq?: string };
    body: undefined;
    answer: OrderAnswer | RepeatedAnswer;
  };
  /** Changes price or open size of an order. */
  amendOrder: {
    path: { instrument: string; client_order_id: string };
    query: { session?: string; session_seq?: string };
    body: AmendRequest;
    answer: OrderAnswer | RepeatedAnswer;
  };
  /** The trades of the account, newest first. */
  listFills: {
    path: undefined;
    query: {
      instrument?: string;
      order_id?: string;
      client_order_id?: string;
      since?: string;
      until?: string;
      after?: string;
      limit?: number;
      cursor?: string;
    };
    body: undefined;
    answer: Fills;
  };
  /** Numbered reports of all that happened to the account, oldest first. */
  listReports: { path: undefined; query: { after?: string; limit?: number }; body: undefined; answer: Reports };
  /** The account's open sessions, oldest first. */
  listSessions: { path: undefined; query: undefined; body: undefined; answer: Sessions };
  /** Opens a session, or finds it. */
  openSession: { path: undefined; query: undefined; body: SessionRequest; answer: Session };
  /** Defines an asset. */
  postAdminAssets: { path: undefined; query: undefined; body: AssetRequest; answer: AssetAnswer };
  /** Defines an instrument. It starts closed. */
  postAdminInstruments: { path: undefined; query: undefined; body: InstrumentRequest; answer: InstrumentAnswer };
  /** Opens an account. */
  postAdminAccounts: { path: undefined; query: undefined; body: AccountRequest; answer: AccountAnswer };
  /** All accounts, by id. */
  getAdminAccounts: { path: undefined; query: { from?: number; limit?: number }; body: undefined; answer: Accounts };
  /** An account, with the limits that bind it. */
  getAdminAccountsAccountId: { path: { account_id: number }; query: undefined; body: undefined; answer: AdminAccount };
  /** Suspends or reinstates an account. */
  postAdminAccountStatus: { path: undefined; query: undefined; body: AccountStatusRequest; answer: OperatorAnswer };
  /** Credits an account. */
  postAdminDeposits: { path: undefined; query: undefined; body: TransferRequest; answer: OperatorAnswer };
  /** Debits an account. */
  postAdminWithdrawals: { path: undefined; query: undefined; body: TransferRequest; answer: OperatorAnswer };
  /** The fees collected in each asset and not yet moved. */
  getAdminFees: { path: undefined; query: undefined; body: undefined; answer: Fees };
  /** Moves the fees collected in an asset to an account. */
  postAdminFees: { path: undefined; query: undefined; body: FeesRequest; answer: FeesAnswer };
  /** Says whose an instrument is, where there are several shards. */
  postAdminInstrumentShards: { path: undefined; query: undefined; body: InstrumentShardRequest; answer: OperatorAnswer };
  /** Takes transfers that another shard's relay delivers. */
  postAdminTransfersIn: { path: undefined; query: undefined; body: TransfersInRequest; answer: TransfersInAnswer };
  /** Sets an account's limits in an instrument. */
  postAdminLimits: { path: undefined; query: undefined; body: LimitsRequest; answer: OperatorAnswer };
  /** Moves an instrument to another trading phase. */
  postAdminPhases: { path: undefined; query: undefined; body: PhaseRequest; answer: OperatorAnswer };
  /** Makes a key, or registers a public one. */
  postAdminKeys: { path: undefined; query: undefined; body: KeyRequest; answer: KeyAnswer };
  /** All keys, without secrets. */
  getAdminKeys: { path: undefined; query: undefined; body: undefined; answer: Keys };
  /** Revokes a key, for open connections too. */
  deleteAdminKeysKeyId: { path: { key_id: string }; query: undefined; body: undefined; answer: KeyRevoked };
  /** Gives an account the key that signs its transactions in place of the one it had. */
  postAdminAccountKeys: { path: undefined; query: undefined; body: AccountKeyRequest; answer: AccountKeyAnswer };
  /** Says which account may issue and burn an asset by transactions. */
  postAdminIssuers: { path: undefined; query: undefined; body: IssuerRequest; answer: OperatorAnswer };
  /** Creates a batch market and opens it. */
  postAdminBatches: { path: undefined; query: undefined; body: BatchRequest; answer: BatchCreated };
  /** Opens or closes a batch market. */
  postAdminBatchPhases: { path: undefined; query: undefined; body: BatchPhaseRequest; answer: OperatorAnswer };
  /** Sets the fee for an account that a transaction of a batch market opens. */
  postAdminAccountFees: { path: undefined; query: undefined; body: AccountFeeRequest; answer: OperatorAnswer };
  /** Writes a snapshot of this replica's state; answered once it is durable. */
  postAdminSnapshots: { path: undefined; query: undefined; body: undefined; answer: SnapshotAnswer };
  /** What this replica says of its cluster. */
  getCluster: { path: undefined; query: undefined; body: undefined; answer: ClusterView };
  /** How this replica stamps orders, and where it leads, how it holds and sequences them (docs/fair-access.md). */
  getFairAccess: { path: undefined; query: undefined; body: undefined; answer: FairAccessView };
  /** Hands leadership to another replica. */
  postAdminClusterTransfer: { path: undefined; query: undefined; body: ReplicaRequest; answer: ClusterView };
  /** Lets a replica into the cluster. */
  postAdminClusterAdd: { path: undefined; query: undefined; body: AddReplicaRequest; answer: ClusterView };
  /** Takes a replica out of the cluster. */
  postAdminClusterRemove: { path: undefined; query: undefined; body: ReplicaRequest; answer: ClusterView };
  /** Goes to a later version of the engine. */
  postAdminClusterEngineVersion: { path: undefined; query: undefined; body: EngineVersionRequest; answer: OperatorAnswer };
  /** Injects faults into the link to a peer, for tests. */
  postAdminClusterFaults: { path: undefined; query: undefined; body: FaultsRequest; answer: Done };
}

/** How each is asked for; in a path, names in braces stand for parameters. */
export const OPERATIONS: { readonly [Name in keyof Operations]: { method: string; path: string; isSigned: boolean } } = {
  getStatus: { method: "GET", path: "/v1/status", isSigned: false },
  getTime: { method: "GET", path: "/v1/time", isSigned: false },
  getClock: { method: "GET", path: "/v1/clock", isSigned: false },
  getLatency: { method: "GET", path: "/v1/latency", isSigned: false },
  getAssets: { method: "GET", path: "/v1/assets", isSigned: false },
  getInstruments: { method: "GET", path: "/v1/instruments", isSigned: false },
  getInstrumentsInstrumentBook: { method: "GET", path: "/v1/instruments/{instrument}/book", isSigned: false },
  getInstrumentsInstrumentBookOrders: { method: "GET", path: "/v1/instruments/{instrument}/book/orders", isSigned: false },
  getInstrumentsInstrumentAuction: { method: "GET", path: "/v1/instruments/{instrument}/auction", isSigned: false },
  getInstrumentsInstrumentTicker: { method: "GET", path: "/v1/instruments/{instrument}/ticker", isSigned: false },
  getInstrumentsInstrumentTrades: { method: "GET", path: "/v1/instruments/{instrument}/trades", isSigned: false },
  getInstrumentsInstrumentCandles: { method: "GET", path: "/v1/instruments/{instrument}/candles", isSigned: false },
  getHistoryTrades: { method: "GET", path: "/v1/history/trades", isSigned: false },
  getHistoryBooks: { method: "GET", path: "/v1/history/books", isSigned: false },
  getHistoryDays: { method: "GET", path: "/v1/history/days", isSigned: false },
  getBatches: { method: "GET", path: "/v1/batches", isSigned: false },
  getBatchesBatchBlocks: { method: "GET", path: "/v1/batches/{batch}/blocks", isSigned: false },
  getBatchesBatchBlocksBlockHeader: { method: "GET", path: "/v1/batches/{batch}/blocks/{block}/header", isSigned: false },
  getBatchesBatchDemand: { method: "GET", path: "/v1/batches/{batch}/demand", isSigned: false },
  postBatchesBatchTransactions: { method: "POST", path: "/v1/batches/{batch}/transactions", isSigned: false },
  getBatchesBatchProofsBlock: { method: "GET", path: "/v1/batches/{batch}/proofs/block", isSigned: false },
  getBatchesBatchProofsTransactionSequence: { method: "GET", path: "/v1/batches/{batch}/proofs/transaction/{sequence}", isSigned: true },
  getBatchesBatchProofsAccountAccountId: { method: "GET", path: "/v1/batches/{batch}/proofs/account/{account_id}", isSigned: true },
  getBatchesBatchProofsOffer: { method: "GET", path: "/v1/batches/{batch}/proofs/offer", isSigned: false },
  getBatchesBatchPools: { method: "GET", path: "/v1/batches/{batch}/pools", isSigned: false },
  getBatchesBatchProofsPool: { method: "GET", path: "/v1/batches/{batch}/proofs/pool", isSigned: false },
  getBatchesBatchProofsShares: { method: "GET", path: "/v1/batches/{batch}/proofs/shares", isSigned: true },
  getShares: { method: "GET", path: "/v1/shares", isSigned: true },
  getOffers: { method: "GET", path: "/v1/offers", isSigned: true },
  getTransactions: { method: "GET", path: "/v1/transactions", isSigned: true },
  getAccount: { method: "GET", path: "/v1/account", isSigned: true },
  getAccountTransfers: { method: "GET", path: "/v1/account/transfers", isSigned: true },
  postAccountTransfers: { method: "POST", path: "/v1/account/transfers", isSigned: true },
  getShards: { method: "GET", path: "/v1/shards", isSigned: false },
  listOpenOrders: { method: "GET", path: "/v1/orders", isSigned: true },
  placeOrder: { method: "POST", path: "/v1/orders", isSigned: true },
  cancelAll: { method: "DELETE", path: "/v1/orders", isSigned: true },
  sendMany: { method: "POST", path: "/v1/orders/batch", isSigned: true },
  getCancelAfter: { method: "GET", path: "/v1/cancel-after", isSigned: true },
  cancelAfter: { method: "POST", path: "/v1/cancel-after", isSigned: true },
  listClosedOrders: { method: "GET", path: "/v1/orders/closed", isSigned: true },
  getOrder: { method: "GET", path: "/v1/orders/{instrument}/{client_order_id}", isSigned: true },
  cancelOrder: { method: "DELETE", path: "/v1/orders/{instrument}/{client_order_id}", isSigned: true },
  amendOrder: { method: "PATCH", path: "/v1/orders/{instrument}/{client_order_id}", isSigned: true },
  listFills: { method: "GET", path: "/v1/fills", isSigned: true },
  listReports: { method: "GET", path: "/v1/reports", isSigned: true },
  listSessions: { method: "GET", path: "/v1/sessions", isSigned: true },
  openSession: { method: "POST", path: "/v1/sessions", isSigned: true },
  postAdminAssets: { method: "POST", path: "/v1/admin/assets", isSigned: true },
  postAdminInstruments: { method: "POST", path: "/v1/admin/instruments", isSigned: true },
  postAdminAccounts: { method: "POST", path: "/v1/admin/accounts", isSigned: true },
  getAdminAccounts: { method: "GET", path: "/v1/admin/accounts", isSigned: true },
  getAdminAccountsAccountId: { method: "GET", path: "/v1/admin/accounts/{account_id}", isSigned: true },
  postAdminAccountStatus: { method: "POST", path: "/v1/admin/account-status", isSigned: true },
  postAdminDeposits: { method: "POST", path: "/v1/admin/deposits", isSigned: true },
  postAdminWithdrawals: { method: "POST", path: "/v1/admin/withdrawals", isSigned: true },
  getAdminFees: { method: "GET", path: "/v1/admin/fees", isSigned: true },
  postAdminFees: { method: "POST", path: "/v1/admin/fees", isSigned: true },
  postAdminInstrumentShards: { method: "POST", path: "/v1/admin/instrument-shards", isSigned: true },
  postAdminTransfersIn: { method: "POST", path: "/v1/admin/transfers/in", isSigned: true },
  postAdminLimits: { method: "POST", path: "/v1/admin/limits", isSigned: true },
  postAdminPhases: { method: "POST", path: "/v1/admin/phases", isSigned: true },
  postAdminKeys: { method: "POST", path: "/v1/admin/keys", isSigned: true },
  getAdminKeys: { method: "GET", path: "/v1/admin/keys", isSigned: true },
  deleteAdminKeysKeyId: { method: "DELETE", path: "/v1/admin/keys/{key_id}", isSigned: true },
  postAdminAccountKeys: { method: "POST", path: "/v1/admin/account-keys", isSigned: true },
  postAdminIssuers: { method: "POST", path: "/v1/admin/issuers", isSigned: true },
  postAdminBatches: { method: "POST", path: "/v1/admin/batches", isSigned: true },
  postAdminBatchPhases: { method: "POST", path: "/v1/admin/batch-phases", isSigned: true },
  postAdminAccountFees: { method: "POST", path: "/v1/admin/account-fees", isSigned: true },
  postAdminSnapshots: { method: "POST", path: "/v1/admin/snapshots", isSigned: true },
  getCluster: { method: "GET", path: "/v1/cluster", isSigned: false },
  getFairAccess: { method: "GET", path: "/v1/fair-access", isSigned: false },
  postAdminClusterTransfer: { method: "POST", path: "/v1/admin/cluster/transfer", isSigned: true },
  postAdminClusterAdd: { method: "POST", path: "/v1/admin/cluster/add", isSigned: true },
  postAdminClusterRemove: { method: "POST", path: "/v1/admin/cluster/remove", isSigned: true },
  postAdminClusterEngineVersion: { method: "POST", path: "/v1/admin/cluster/engine-version", isSigned: true },
  postAdminClusterFaults: { method: "POST", path: "/v1/admin/cluster/faults", isSigned: true },
};
