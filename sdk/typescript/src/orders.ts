// What every way to send commands has in common.

import {
  type Changes, type Command, type CommandAnswer, type Exits, type NewOrder, type OrderName, type Which, amend, cancel, massCancel, order,
} from "./commands.ts";
import { Refused } from "./errors.ts";
import type { ManyResult, MassCancelAnswer, OrderAnswer } from "./schema/index.ts";

/** The number of a session's command. */
export interface CommandNumber {
  session: string;
  session_seq: string;
}

/** What takes commands to the venue: HTTP or a stream. One attempt each. */
export interface Carrier {
  carry(command: Command, number: CommandNumber | null): Promise<CommandAnswer>;
  carryMany(commands: readonly Command[], number: CommandNumber | null): Promise<ManyResult[]>;
}

/**
 * What every way to send commands has: {@link Client} by HTTP, `Stream` over the WebSocket, `Session` under numbers by either. `Repeated`
 * is what a session answers to a command that was known already, and `Asked` an order as it takes one: a session without exits.
 */
export abstract class Orders<Repeated = never, Asked extends NewOrder = NewOrder & Exits> {
  protected abstract one(command: Command): Promise<CommandAnswer>;
  protected abstract several(commands: readonly Command[]): Promise<ManyResult[]>;

  /** Enters an order, with its exits where it has any: all of them or none. The answer says what became of it at once. */
  submit(asked: Asked): Promise<OrderAnswer | Repeated> {
    return this.#answered(() => order(asked));
  }

  cancel(instrument: string, name: OrderName): Promise<OrderAnswer | Repeated> {
    return this.#answered(() => cancel(instrument, name));
  }

  /** Changes price, trigger or open size of an order. */
  amend(instrument: string, name: OrderName, changes: Changes): Promise<OrderAnswer | Repeated> {
    return this.#answered(() => amend(instrument, name, changes));
  }

  /** Cancels all open orders, or those of one instrument or side. */
  massCancel(which: Which = {}): Promise<MassCancelAnswer | Repeated> {
    return this.#answered(() => massCancel(which));
  }

  /**
   * Up to 100 commands, carried out in their order; the functions of `commands` make them. Returned are, in the same places, the answer of
   * each or its refusal, which is not thrown: the others go on. Of an order with exits all is entered, or nothing.
   */
  async many(commands: readonly Command[]): Promise<(OrderAnswer | MassCancelAnswer | Repeated | Refused)[]> {
    const results = await this.several(commands);
    return results.map((result) => answerOf(result) as OrderAnswer | MassCancelAnswer | Repeated | Refused);
  }

  /**
   * Cancels an order and enters another one, in one request. They are two commands: the other one is entered also where the first was
   * filled already, which `cancelled` says. To change an order in place, `amend` it.
   */
  async replace(
    instrument: string,
    name: OrderName,
    by: Asked,
  ): Promise<{ cancelled: OrderAnswer | Repeated | Refused; placed: OrderAnswer | Repeated | Refused }> {
    const [cancelled, placed] = await this.many([cancel(instrument, name), order(by)]);
    return { cancelled: cancelled as OrderAnswer | Repeated | Refused, placed: placed as OrderAnswer | Repeated | Refused };
  }

  async #answered<Answer>(make: () => Command): Promise<Answer> {
    return (await this.one(make())) as Answer;
  }
}

/** The answer to one of several commands, or its refusal. */
export function answerOf({ answer, error, log_index }: ManyResult): CommandAnswer | Refused {
  if (error) return new Refused(error, log_index);
  if (answer) return answer;
  throw new TypeError("a result without answer and error");
}
