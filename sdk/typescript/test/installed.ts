// The package as a program gets it: packed, and installed in a folder of its own.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PACKAGE = join(import.meta.dirname, "..");

/** A folder in which programs find the package. */
export function installed(): string {
  const folder = mkdtempSync(join(tmpdir(), "walras-package-"));
  const npm = (args: string[], cwd: string): void =>
    void execFileSync("npm", [...args, "--loglevel=error"], { cwd, stdio: ["ignore", "ignore", "inherit"] });
  npm(["pack", "--pack-destination", folder], PACKAGE);
  const [archive] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  npm(["install", "--offline", "--no-audit", "--no-fund", `./${archive}`], folder);
  return folder;
}
