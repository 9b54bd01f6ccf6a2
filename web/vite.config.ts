import { defineConfig } from "vite";

// Everything the page needs is a file of its own under /assets, so that it works under `default-src 'self'`:
// nothing is inlined as a data: address, no module preload script is written into the page.
const venue = process.env["WALRAS_VENUE"] ?? "http://127.0.0.1:7070";

export default defineConfig({
  // The client of ../sdk/typescript, from its sources.
  resolve: { tsconfigPaths: true },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    chunkSizeWarningLimit: 600,
  },
  server: {
    fs: { allow: [".", "../sdk/typescript/src"] },
    proxy: {
      "/v1/ws": { target: venue.replace(/^http/, "ws"), ws: true },
      "/v1": { target: venue },
    },
  },
});
