// The other end of a stream's WebSocket, in the test's own process.

import { setImmediate } from "node:timers/promises";
import type { SocketConstructor } from "../src/stream.ts";

type Message = Record<string, unknown> & { op: string; id?: string };

export class FakeSocket {
  static readonly all: FakeSocket[] = [];
  readonly url: string;
  readyState = 0;
  readonly sent: Message[] = [];
  onopen: ((event: object) => unknown) | null = null;
  onmessage: ((event: { data: string }) => unknown) | null = null;
  onclose: ((event: object) => unknown) | null = null;
  onerror: ((event: object) => unknown) | null = null;

  constructor(url: string) {
    this.url = url;
    FakeSocket.all.push(this);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Message);
  }

  close(): void {
    this.end();
  }

  // What the venue does.

  open(): void {
    this.readyState = 1;
    this.onopen?.({});
  }

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  /** Answers the message of this number, or the last one. */
  answer(message: object, to: Message | undefined = this.sent.at(-1)): void {
    this.say({ ...message, id: to?.id });
  }

  end(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({});
  }

  /** What was sent, without numbers and pings. */
  get asked(): object[] {
    return this.sent.filter(({ op }) => op !== "ping").map(({ id: _, ...message }) => message);
  }
}

export const Sockets = FakeSocket as unknown as SocketConstructor;

/** Lets what waits for promises go on. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await setImmediate();
}

/** The newest socket, once there are so many. */
export async function socket(count: number): Promise<FakeSocket> {
  while (FakeSocket.all.length < count) await setImmediate();
  return FakeSocket.all.at(-1) as FakeSocket;
}
