// The page's client: of the venue that serves it. Without a page, as in unit tests, there is no such address.

import { Client } from "walras";

export const client = new Client({ url: globalThis.location?.origin ?? "http://127.0.0.1:7070" });
