// The view of the venue's machines: replicas, leaf gateways and the relay tree, against the fake venue.

import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { assertFits, choose, open, step, text, until } from "./browser.ts";
import { assertWithin } from "./e2e-layout.ts";
import { FakeFair } from "./fake/fair.ts";
import { type Running, startFakeVenue } from "./fake-venue.ts";

const SIZES = [{ width: 1440, height: 900 }, { width: 1280, height: 720 }, { width: 390, height: 844 }];

export async function networkSteps(browser: Browser): Promise<void> {
  type Act = (page: Page, fake: Running) => Promise<void>;
  const at = (name: string, fair: FakeFair | null, act: Act): Promise<void> => step(`network: ${name}`, async () => {
    const fake = await startFakeVenue(0, 0);
    fake.venue.fair = fair;
    try {
      for (const size of SIZES) {
        for (const dark of size.width === 1440 ? [false, true] : [false]) {
          const watched = await open(browser, `${fake.address}/#network`, { ...size, dark });
          await watched.page.locator("#connection[data-state=live]").waitFor();
          await act(watched.page, fake);
          await assertFits(watched.page, `${name} at ${size.width}`, size);
          const kind = fair?.layers.length === 0 ? "plain-" : (fair?.parallelLayers.length ?? 0) > 0 ? "trees-" : "";
          if (fair) await watched.shoot(`network-${kind}${dark ? "dark-" : ""}${size.width}`);
          await watched.assertClean();
          await watched.page.context().close();
        }
      }
    } finally {
      await fake.close();
    }
  });
  await at("has no tab where the venue is one machine", null, async (page) => {
    await until("the status has come", async () => /\d/.test(await text(page, "#log-index")));
    assert.equal(await page.locator("#tab-network").isVisible(), false);
  });
  const tree = new FakeFair();
  [tree.gateways, tree.lostGateway, tree.layers, tree.latePackets] = [20, 47, [3, 20], 37];
  await at("draws gateways, replicas, relays and receivers, and says what is lost", tree, seesTree);
  const trees = new FakeFair();
  [trees.gateways, trees.layers, trees.parallelLayers, trees.latePackets] = [6, [3, 20], [[2, 4, 20]], 37];
  await at("draws the relay tree that is chosen, and counts all of them", trees, choosesTree);
  await at("says where there is neither a tree nor a gateway", new FakeFair(), async (page) => {
    await until("the replicas are drawn", async () => (await page.locator("#tree-host .node").count()) === 3);
    assert.match(await text(page, "#tree-words"), /no relay tree/);
    const facts = await Promise.all(["gateways", "copies", "receivers-late"].map((fact) => text(page, `#network-${fact}`)));
    assert.deepEqual(facts, ["–", "–", "–"]);
    assert.equal(await page.locator("#leaves-table").isVisible(), false, "no head of a table without rows");
  });
}

async function choosesTree(page: Page): Promise<void> {
  const [nodes, down] = [page.locator("#tree-host .node"), page.locator("#tree-host .node.relay.down")];
  await until("the first tree is drawn", async () => (await nodes.count()) === 6 + 3 + 3 + 20);
  assert.deepEqual(await page.locator("#tree-choice option").allTextContents(), ["Tree 1", "Tree 2 (2 down)"]);
  assert.equal(await down.count(), 0);
  assert.equal(await page.locator("#tree-out").isVisible(), false, "nothing is said of relays that are in");
  await page.locator("#tree-choice").selectOption({ index: 1 });
  await until("the second tree is drawn", async () => (await nodes.count()) === 6 + 3 + 2 + 4 + 20);
  assert.equal(await down.count(), 2, "the relay that does not answer, and the one that forwards nothing");
  assert.match(await text(page, "#tree-out"), /: layer 0, place 0: does not answer; layer 1, place 0: answers and forwards nothing\.$/);
  assert.match(
    (await down.nth(1).locator("title").textContent()) ?? "", /^Relay, layer 1, place 0: answers and forwards nothing: 0 packets/,
  );
  assert.match((await page.locator("#tree-host svg").getAttribute("aria-label")) ?? "", /Relay layer 0: 2, Relay layer 1: 4, Receivers 20/);
  // Of both trees: packets late at receivers, and the longer window.
  assert.equal(await text(page, "#network-receivers-late"), "74");
  assert.match((await text(page, "#network-delivered")).replace(/\s/gu, " "), /^150 µs$/);
  const before = await text(page, "#network-packets");
  await until("it goes on", async () => (await text(page, "#network-packets")) !== before);
  assert.equal(await nodes.count(), 6 + 3 + 2 + 4 + 20, "the choice stays");
  await readsRelays(page);
}

/** What each relay lost, and got by hedges, in a table in place of the picture: by keyboard alone. */
async function readsRelays(page: Page): Promise<void> {
  const box = await page.locator("#tree-host").boundingBox();
  await choose(page, "input[name=tree-shown][value=table]");
  const rows = page.locator("#relays-table tbody tr");
  await until("the relays are listed", async () => (await rows.count()) === 6);
  assert.equal(await page.locator("#tree-host").isVisible(), false);
  const cells = await rows.evaluateAll((all) =>
    all.map((row) => [...(row as HTMLTableRowElement).cells].map((cell) => (cell.textContent ?? "").replace(/\s/gu, " "))));
  assert.deepEqual(cells.slice(0, 4), [
    ["0, 0does not answer", "–", "–", "–", "–"], ["0, 1", "7", "2", "1", "1 ns"],
    ["1, 0answers and forwards nothing", "0", "0", "0", "1 ns"], ["1, 1", "7", "2", "3", "1 ns"],
  ]);
  await assertWithin(page, "#relays-table th, #relays-table td", "#relays-body");
  const room = await page.locator("#relays-body").boundingBox();
  assert.ok(box && room);
  assert.ok(Math.abs(room.height - box.height) <= 1, `the table is as high as the picture: ${room.height} of ${box.height} px`);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "relays-body", "the list is reached, and scrolls, by keyboard");
  // Another tree has other relays, and what is in trouble is said above the table too.
  await page.locator("#tree-choice").selectOption({ index: 0 });
  await page.locator("#relays-body .empty").waitFor();
  assert.equal(await page.locator("#relays-table").isVisible(), false, "none has answered there");
  assert.equal(await page.locator("#tree-out").isVisible(), false);
  await page.locator("#tree-choice").selectOption({ index: 1 });
  await until("the second tree's are back", async () => (await page.locator("#tree-out").isVisible()) && (await rows.count()) === 6);
  await choose(page, "input[name=tree-shown][value=picture]");
  await until("the picture is back", async () => (await page.locator("#tree-host .node").count()) === 6 + 3 + 2 + 4 + 20);
  assert.equal(await page.locator("#relays-body").isVisible(), false);
}

async function seesTree(page: Page): Promise<void> {
  await until("all machines are drawn", async () => (await page.locator("#tree-host .node").count()) === 20 + 3 + 3 + 20);
  assert.equal(await page.locator("#tree-choice").isVisible(), false, "there is one tree to draw");
  assert.equal(await page.locator("#tree-host .node.gateway.down").count(), 1, "the gateway that is not linked");
  assert.equal(await page.locator("#tree-host .node.replica.leads").count(), 1);
  // One to each relay of the first layer, and each of those to each receiver.
  assert.equal(await page.locator("#tree-host .edge.data").count(), 3 + 3 * 20);
  assert.equal(await page.locator("#tree-host .edge.orders").count(), 6, "gateways that stand below this replica");
  assert.equal(await text(page, "#network-who"), "Replica 1 leads");
  await until(
    "the window of delivery is shown", async () => /^[\d.]+ ms$/.test((await text(page, "#network-window")).replace(/\s/gu, " ")),
  );
  assert.equal(await text(page, "#network-gateways"), "19 / 20");
  assert.equal(await text(page, "#network-copies"), "2");
  assert.match(await text(page, "#network-unfair"), /% of 1/u);
  assert.match(await text(page, "#network-matching"), /^0\.21\s?%$/u);
  assert.equal(await text(page, "#network-receivers-late"), "37");
  assert.match(
    (await page.locator("#network-receivers-late").getAttribute("title")) ?? "",
    /^Of 9\s300 samples that receivers reported, 37 were late/u,
  );
  assert.match((await text(page, "#network-delivered")).replace(/\s/gu, " "), /^100 µs$/);
  assert.equal(await page.locator("#replicas-table tbody tr").count(), 3);
  assert.equal(await page.locator("#leaves-table tbody tr").count(), 20);
  // No column is one in which nothing can ever be.
  const heads = (table: string): Promise<string[]> => page.locator(`${table} thead th`).allTextContents();
  assert.deepEqual(await heads("#replicas-table"), ["Replica", "Link", "Orders", "Overtaken"]);
  assert.deepEqual(await heads("#leaves-table"), ["Leaf gateway", "Link", "Stands below", "Sessions"]);
  assert.match(await text(page, "#replicas-table tbody tr"), /\d\s?%$/u);
  const asked = await page.locator("#network-head dl > div").filter({ has: page.locator("#network-asked") }).innerText();
  assert.match(asked, /^Gap requests\s+\d+$/u);
  const lost = page.locator("#leaves-table tbody tr").filter({ has: page.locator("td:first-child", { hasText: /^47$/ }) });
  assert.match((await lost.textContent()) ?? "", /Not linked/);
  assert.equal(await lost.getAttribute("title"), "the other end closed the connection");
  assert.equal(await page.locator("#waits-table tbody tr").count(), 8);
  assert.match((await page.locator("#tree-host svg").getAttribute("aria-label")) ?? "", /Leaf gateways 20; Replicas 3; .*Receivers 20/);
  const before = await text(page, "#network-packets");
  await until("it goes on", async () => (await text(page, "#network-packets")) !== before);
  const cut = await page.evaluate(() => ["#waits-body", "#leaves-body", "#network-head"].filter((each) => {
    const box = document.querySelector(each);
    return box !== null && box.scrollWidth > box.clientWidth + 1;
  }));
  assert.deepEqual(cut, [], "nothing is cut sideways");
  // Every label of the picture lies within it.
  const outside = await page.locator("#tree-host svg text").evaluateAll((texts) => {
    const host = document.querySelector("#tree-host")!.getBoundingClientRect();
    return texts.map((each) => each.getBoundingClientRect()).filter(
      (box) => box.left < host.left - 1 || box.right > host.right + 1 || box.bottom > host.bottom + 1,
    ).length;
  });
  assert.equal(outside, 0, "labels outside of the picture");
}
