// The program, run by a test: processes that end with it, and waits that end.

import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** The program that WALRAS_PROGRAM names, otherwise the debug build. */
export function programFile(): string {
  const program = resolve(process.env["WALRAS_PROGRAM"] ?? join(import.meta.dirname, "../../../target/debug/walras"));
  assert.ok(
    existsSync(program), `There is no program at ${program}: build it (cargo build -p walras-node), or name one in WALRAS_PROGRAM.`,
  );
  return program;
}

/** These end with the test. */
export function endsWithTest(...children: ChildProcess[]): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      // Not by force: one that has children of its own ends them.
      for (const child of children) child.kill("SIGTERM");
      process.exit(1);
    });
  }
}

/** What the first line of its output that fits has in brackets. */
export async function printed({ stdout }: ChildProcess, line: RegExp): Promise<string> {
  assert.ok(stdout);
  const lines: string[] = [];
  for await (const text of createInterface({ input: stdout })) {
    lines.push(text);
    const found = line.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`The program ended without such a line as ${line}. It printed: ${lines.join("\n")}`);
}

export async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

export async function withinMs<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${ms / 1000} s in vain until ${what}`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
