// `npm run generate`: writes src/schema.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { SCHEMA_FOLDER, schemaSources } from "./schema.ts";

const sources = schemaSources();
rmSync(SCHEMA_FOLDER, { recursive: true, force: true });
mkdirSync(SCHEMA_FOLDER);
for (const [file, text] of sources) writeFileSync(new URL(file, SCHEMA_FOLDER), text);
