import assert from "node:assert/strict";
import test from "node:test";
import { type Arrangement, type Panel, PANELS } from "../src/base/settings.ts";
import { type Areas, gridsOf } from "../src/state/panels.ts";

const ARRANGEMENTS: Arrangement[] = ["standard", "chart", "book"];
const ALL = new Set<Panel>(PANELS);
const plain = (areas: Areas): string[] => areas.map((row) => row.join(" "));
const without = (...hidden: Panel[]): Set<Panel> => new Set(PANELS.filter((panel) => !hidden.includes(panel)));

/** Every choice of panels, in every arrangement, with an auction and without. */
function* choices(): Generator<[arrangement: Arrangement, shown: Set<Panel>, collects: boolean]> {
  for (const arrangement of ARRANGEMENTS) {
    for (let bits = 0; bits < 2 ** PANELS.length; bits += 1) {
      const shown = new Set(PANELS.filter((_, at) => ((bits >> at) & 1) === 1));
      yield [arrangement, shown, false];
      if (shown.has("depth")) yield [arrangement, shown, true];
    }
  }
}

/** The names of the areas, each of which is one rectangle. */
function namesOf(areas: Areas, columns: number): Set<string> {
  const cells = areas.flatMap((row, y) => row.map((name, x) => ({ name, x, y })));
  assert.ok(areas.every((row) => row.length === columns), `${columns} columns: ${plain(areas).join(" / ")}`);
  const names = new Set(cells.map(({ name }) => name));
  for (const name of names) {
    const own = cells.filter((cell) => cell.name === name);
    const span = (of: number[]): number => Math.max(...of) - Math.min(...of) + 1;
    const size = span(own.map(({ x }) => x)) * span(own.map(({ y }) => y));
    assert.equal(own.length, size, `${name} is a rectangle in ${plain(areas).join(" / ")}`);
  }
  return names;
}

test("whatever is chosen, each panel that is shown has one rectangle, and no other has any", () => {
  for (const [arrangement, shown, collects] of choices()) {
    const { two, three, wide, wideRows } = gridsOf(arrangement, shown, collects);
    const said = `${arrangement}, ${[...shown].join(" ")}`;
    assert.deepEqual([...namesOf(two, 2)].sort(), ["book", "ticket", ...shown].sort(), said);
    const beside = ["book", "side", ...[...shown].filter((panel) => panel !== "holdings")].sort();
    assert.deepEqual([...namesOf(three, 3)].sort(), beside, said);
    assert.deepEqual([...namesOf(wide, 5)].sort(), beside, said);
    assert.equal(wideRows.length, wide.length, said);
    assert.equal(wideRows.filter((height) => height.includes("1fr")).length, 1, `one row takes what is left: ${said}`);
  }
});

test("the standard arrangement has the watch list above the trades", () => {
  const { two, three, wide } = gridsOf("standard", ALL, false);
  assert.deepEqual(plain(two), [
    "watch watch", "chart chart", "book ticket", "book holdings", "depth tape", "orders orders", "fills fills",
  ]);
  assert.deepEqual(plain(three), ["watch watch watch", "book chart side", "book depth side", "tape orders side", "tape fills side"]);
  assert.deepEqual(plain(wide), [
    "book chart chart watch side", "book chart chart tape side", "book depth depth tape side", "book orders fills fills side",
  ]);
});

test("a large chart takes the room of the trades, and a large book that of the orders", () => {
  assert.deepEqual(plain(gridsOf("chart", ALL, false).wide), [
    "watch chart chart chart side", "book chart chart chart side", "book depth depth tape side", "book orders fills fills side",
  ]);
  assert.deepEqual(plain(gridsOf("chart", ALL, false).three).slice(0, 2), ["watch watch watch", "chart chart side"]);
  assert.deepEqual(plain(gridsOf("book", ALL, false).wide), [
    "book chart chart watch side", "book chart chart tape side", "book depth depth tape side", "book orders orders tape side",
    "book fills fills tape side",
  ]);
});

test("what is hidden leaves its room to its neighbours", () => {
  assert.deepEqual(plain(gridsOf("standard", without("watch", "depth"), false).wide), [
    "book chart chart tape side", "book orders fills fills side",
  ]);
  assert.deepEqual(plain(gridsOf("standard", without("tape", "watch", "fills"), false).wide), [
    "book chart chart chart side", "book depth depth depth side", "book orders orders orders side",
  ]);
  assert.deepEqual(plain(gridsOf("chart", without("depth", "tape", "watch"), false).wide), [
    "book chart chart chart side", "book orders fills fills side",
  ]);
  assert.deepEqual(plain(gridsOf("standard", without("depth"), false).three), [
    "watch watch watch", "book chart side", "book orders side", "tape fills side",
  ]);
});

test("while orders collect for an auction its curves have the chart's room", () => {
  for (const arrangement of ARRANGEMENTS) {
    const calm = plain(gridsOf(arrangement, ALL, false).wide);
    const swapped = calm.map((row) => row.replaceAll("chart", "*").replaceAll("depth", "chart").replaceAll("*", "depth"));
    assert.deepEqual(plain(gridsOf(arrangement, ALL, true).wide), swapped);
  }
});
