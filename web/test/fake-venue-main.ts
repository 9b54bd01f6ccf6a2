// `npm run fake-venue`: the fake venue by hand, for developing the page (`npm run dev` beside it) or looking at the built one.

import { startFakeVenue } from "./fake-venue.ts";

const running = await startFakeVenue(Number(process.env["PORT"] ?? "7070"));
console.log(`The page: ${running.edAddress}\nWith \`npm run dev\`: the same fragment behind the address it prints. Ctrl-C stops.`);
