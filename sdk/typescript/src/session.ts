// Commands under numbers of their own, so that each takes effect once: docs/rest.md, "Once".

import type { Client } from "./client.ts";
import { type Command, type CommandAnswer, type NewOrder, checkNumbered } from "./commands.ts";
import { BadAnswer, NotConnected, OutcomeUnknown, Refused } from "./errors.ts";
import { type Carrier, type CommandNumber, Orders, answerOf } from "./orders.ts";
import type { CancelAfter, ManyResult, RepeatedAnswer } from "./schema/index.ts";
import type { Stream } from "./stream.ts";
import { isNotLeader, isStale, pause } from "./transport.ts";

/**
 * Refusals after which the same command is sent again, since it is not in the log: busy book, throttled, starting, no disk, overloaded, no
 * leader.
 */
const AGAIN: ReadonlySet<number> = new Set([92, 105, 107, 110, 111, 112, 116]);
/** With one of these it may be in the log all the same. */
const UNCERTAIN: ReadonlySet<number> = new Set([110, 111, 116]);
const PATIENCE_MS = 60_000;
const [PAUSE_MS, PAUSE_MS_MAX] = [50, 2_000];
const TOKEN_BITS = 63n;

export interface SessionOptions {
  /**
   * Names the session: the same one is the same session for as long as that is open. A program that does not know what came of its last
   * commands takes a new one, as is done without it.
   */
  token?: string | bigint;
  /** Commands go over this stream, which has signed in, and not by HTTP. */
  stream?: Stream;
  /** How long a command is sent again. */
  patienceMs?: number;
}

/** Made by `Client.session`. One command at a time: what is sent meanwhile waits. Its orders have no exits, which have no numbers. */
export class Session extends Orders<RepeatedAnswer, NewOrder> {
  readonly client: Client;
  readonly token: string;
  /** Its number at the venue. */
  readonly id: string;
  readonly #carrier: Carrier;
  readonly #stream: Stream | null;
  readonly #patienceMs: number;
  #nextSeq: bigint;
  #last: Promise<unknown> = Promise.resolve();
  #isLost = false;

  private constructor(
    client: Client,
    { session, token, next_seq }: { session: string; token: string; next_seq: string },
    { stream, patienceMs = PATIENCE_MS }: SessionOptions,
  ) {
    super();
    [this.client, this.token, this.id, this.#nextSeq] = [client, token, session, BigInt(next_seq)];
    [this.#carrier, this.#stream, this.#patienceMs] = [stream ?? client, stream ?? null, patienceMs];
  }

  static async open(client: Client, options: SessionOptions): Promise<Session> {
    const token = String(options.token ?? randomToken());
    const opened = await untilAnswered(client, null, options.patienceMs ?? PATIENCE_MS, "the session may be open", () =>
      client.openSession(token),
    );
    return new Session(client, opened, options);
  }

  /** The number of the next command. */
  get nextSeq(): bigint {
    return this.#nextSeq;
  }

  /** As {@link Client.cancelAfter}, under a number, by HTTP. */
  cancelAfter(timeoutMs: number): Promise<CancelAfter> {
    return this.#numbered((number) => this.client.call("cancelAfter", { query: number, body: { timeout_ms: timeoutMs } }), () => 1n);
  }

  protected async one(command: Command): Promise<CommandAnswer> {
    checkNumbered([command]);
    return this.#numbered((number) => this.#carrier.carry(command, number), () => 1n);
  }

  protected async several(commands: readonly Command[]): Promise<ManyResult[]> {
    checkNumbered(commands);
    let known: ManyResult[] = [];
    const send = async (number: CommandNumber): Promise<ManyResult[]> => {
      const results = await this.#carrier.carryMany(commands, number);
      // The first answer says more than that to a repeat.
      known = results.map((result, place) => [known[place], result].find((each) => each && usesNumber(each)) ?? result);
      const doubt = known.find((each) => !usesNumber(each) && UNCERTAIN.has(each.error?.code ?? 0));
      if (doubt) throw answerOf(doubt) as Refused;
      return known;
    };
    // Those that the venue had no place for use no number.
    return this.#numbered(send, (results) => BigInt(results.filter(usesNumber).length));
  }

  /** After the commands before it, under the next number. */
  #numbered<Answer>(send: (number: CommandNumber) => Promise<Answer>, used: (answer: Answer) => bigint): Promise<Answer> {
    const next = this.#last.then(async () => {
      if (this.#isLost) {
        throw new OutcomeUnknown(
          "the outcome of an earlier command is unknown: open another session, and look at the orders and fills first",
        );
      }
      try {
        const answer = await untilAnswered(this.client, this.#stream, this.#patienceMs, LOST, () =>
          send({ session: this.id, session_seq: String(this.#nextSeq) }),
        );
        this.#nextSeq += used(answer);
        return answer;
      } catch (error) {
        if (error instanceof Refused && error.logIndex !== null) this.#nextSeq += 1n;
        if (error instanceof OutcomeUnknown) this.#isLost = true;
        throw error;
      }
    });
    this.#last = next.catch(() => {});
    return next;
  }
}

/** Sends it again, by any replica, until there is an answer: it is the same command under the same number. */
async function untilAnswered<Answer>(
  client: Client, stream: Stream | null, patienceMs: number, lost: string, send: () => Promise<Answer>,
): Promise<Answer> {
  const endsMs = performance.now() + patienceMs;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    const { url } = client;
    try {
      await stream?.untilSignedIn(endsMs - performance.now());
      return await send();
    } catch (error) {
      if (!isPassing(error, stream)) throw error;
      if (performance.now() + pauseMs >= endsMs) {
        throw new OutcomeUnknown(`no answer within ${patienceMs / 1_000} s (${(error as Error).message}): ${lost}`);
      }
      if (isStale(error)) await client.transport.prepareNextStamp().catch(() => {});
      if (stream) stream.recover(error as Error);
      else if (isNotLeader(error)) client.transport.leave(url, error.leader?.url);
      else if (!(error instanceof Refused)) client.transport.leave(url);
      await pause(pauseMs);
    }
  }
}

/** Whether one of several commands has used its number up: it was carried out, or its rejection is in the log. */
function usesNumber({ answer, log_index }: ManyResult): boolean {
  return answer !== undefined || log_index !== undefined;
}

const LOST = "use this session no more, and look at orders and fills";
const UNAUTHENTICATED = 102;

/** Whether another attempt may be answered. A rejection that is in the log is an answer. */
function isPassing(error: unknown, stream: Stream | null): boolean {
  if (error instanceof Refused) {
    // A stream that signed in at a replica that did not lead must do so again.
    return error.logIndex === null && (AGAIN.has(error.code) || stream !== null && error.code === UNAUTHENTICATED);
  }
  return error instanceof OutcomeUnknown || error instanceof NotConnected || error instanceof BadAnswer;
}

function randomToken(): bigint {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return ((BigInt(high) << 32n) | BigInt(low)) & ((1n << TOKEN_BITS) - 1n);
}
