// `npm run build`: compiles src into dist, and puts the licences next to it, so that `npm pack` has what a program needs.

import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${folder}dist`, { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "--project", "tsconfig.build.json"], { cwd: folder, stdio: "inherit" });
// The compiler leaves the imports of declarations as they are, and only recent ones look for what they name.
for (const file of readdirSync(`${folder}dist`, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".d.ts"))) {
  const text = readFileSync(`${folder}dist/${file}`, "utf8");
  writeFileSync(`${folder}dist/${file}`, text.replaceAll(/(["'])(\.\.?\/[^"']+)\.ts\1/g, "$1$2.js$1"));
}
for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(`${folder}../../${licence}`, `${folder}${licence}`);
