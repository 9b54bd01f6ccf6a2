// Answers of a venue over HTTP as a test plans them: what it is asked is written down.

import { type IncomingMessage, createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Asked {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
}

/** A status and a body; `"drop"` breaks the connection off, a text is no JSON. */
export type Planned = [status: number, body: object | string] | "drop";

export class HttpVenue {
  readonly asked: Asked[] = [];
  readonly #server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const asked: Asked = {
        method: request.method ?? "", path: request.url ?? "", headers: request.headers, body: Buffer.concat(parts).toString(),
      };
      this.asked.push(asked);
      const planned = this.#answer(asked);
      if (planned === "drop") return request.socket.destroy();
      response.writeHead(planned[0], { "Content-Type": "application/json" });
      response.end(typeof planned[1] === "string" ? planned[1] : JSON.stringify(planned[1]));
    });
  });
  readonly #answer: (asked: Asked) => Planned;

  private constructor(answer: (asked: Asked) => Planned) {
    this.#answer = answer;
  }

  static async start(answer: (asked: Asked) => Planned): Promise<HttpVenue> {
    const venue = new HttpVenue(answer);
    await new Promise<void>((resolve) => venue.#server.listen(0, "127.0.0.1", resolve));
    return venue;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Methods and paths, in their order. */
  get lines(): string[] {
    return this.asked.map(({ method, path }) => `${method} ${path}`);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

export const refused = (code: number, name: string, more: object = {}): object => ({
  error: { code, name, message: "what to do", ...more },
});
