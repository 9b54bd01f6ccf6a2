// `npm run fake-venue`: the fake venue by hand, for developing the page (with `npm run dev`) or looking at the built one.

import { FakeFair } from "./fake/fair.ts";
import { startFakeVenue } from "./fake-venue.ts";

const running = await startFakeVenue(Number(process.env["PORT"] ?? "7070"));
running.venue.fair = new FakeFair();
console.log(`The page: ${running.edAddress}\nWith \`npm run dev\`: the same fragment behind the address it prints. Ctrl-C stops.`);
