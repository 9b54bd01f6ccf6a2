// What is one's own: fills, balances, positions.

import { type Balance, type Fill, formatUnits, parseUnits, pathSymbol, type Position } from "walras";
import { trimZeros } from "../base/decimal.ts";
import { byId, h, hidden } from "../base/dom.ts";
import { group, showShort, showTime, zoneName } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { roleName, sideText } from "../texts/names.ts";
import { Rows, setCells, table } from "./rows.ts";

const FILLS_SHOWN = 100;
/** Zeros beyond these say nothing, and take the room of the columns after them. */
const DECIMALS_LEAST = 2;
/** Of a fee below one, and of others: the whole of it is in the row's title. */
const [SMALL_FEE_DECIMALS, FEE_DECIMALS] = [4, 2];

export function fillsView(venue: Venue): void {
  const said = t.fills;
  const { element, body } = table(said.caption(zoneName()), [
    { name: said.time },
    { name: said.price, numeric: true },
    { name: said.size, numeric: true },
    { name: said.fee, numeric: true },
    { name: said.role },
  ]);
  element.id = "fills-table";
  const empty = h("p.empty", {}, said.none);
  byId("fills-body").append(element, empty);
  const rows = new Rows<Fill>(body, (fill) => {
    const quote = venue.instrument(fill.instrument)?.quote ?? "";
    const [time, fee] = [`${showTime(fill.time_ns, true)} ${zoneName()}`, `${group(fill.fee)} ${quote}`.trim()];
    const row = h("tr", { title: said.rowTitle(fill.instrument, fill.trade_id, time, roleName(fill.role), fee) },
      h("td"), h("td", { class: `num ${fill.side}` }), h("td.num"), h("td.num"), h("td"));
    const [mark = "", ...side] = sideText(fill.side).split(" ");
    setCells(row, [showTime(fill.time_ns), "", group(trimZeros(fill.size, DECIMALS_LEAST)), feeText(fill.fee), roleName(fill.role)]);
    row.cells[1]?.replaceChildren(mark, hidden(` ${side.join(" ")}`), ` ${group(fill.price)}`);
    return row;
  }, () => {});
  const draw = oncePerFrame(() => {
    const fills = venue.account.fills.value;
    rows.show(fills.slice(0, FILLS_SHOWN), (fill) => `${fill.instrument} ${fill.trade_id} ${fill.order_id}`);
    element.hidden = fills.length === 0;
    empty.hidden = fills.length > 0;
  });
  venue.account.fills.watch(draw);
  draw();
}

function feeText(fee: string): string {
  return showShort(trimZeros(fee, DECIMALS_LEAST), /^-?0?\./.test(fee) ? SMALL_FEE_DECIMALS : FEE_DECIMALS);
}

export function holdingsView(venue: Venue): void {
  const said = t.holdings;
  const balances = table(said.balances, [
    { name: said.asset }, { name: said.available, numeric: true }, { name: said.reserved, numeric: true },
  ]);
  balances.element.id = "balances-table";
  const positions = table(said.positions, [
    { name: said.position },
    { name: said.net, numeric: true },
    { name: said.openOrders, numeric: true },
  ]);
  positions.element.id = "positions-table";
  const empty = h("p.empty", {}, said.none);
  byId("holdings-body").append(balances.element, positions.element, empty);
  const balanceRows = new Rows<Balance>(
    balances.body,
    () => h("tr", {}, h("td"), h("td.num"), h("td.num")),
    (row, { asset, available, reserved }) => setCells(row, [asset, group(trimZeros(available, 2)), group(trimZeros(reserved, 2))]),
  );
  const positionRows = new Rows<Position>(
    positions.body,
    () => h("tr", {}, h("td"), h("td.num"), h("td.num")),
    (row, position) => setCells(row, [position.instrument, signed(venue, position), String(openOrders(venue, position.instrument))]),
  );
  const draw = oncePerFrame(() => {
    const { state } = venue.account;
    empty.hidden = state.value === "signed_in";
    balances.element.hidden = venue.account.balances.value.size === 0;
    positions.element.hidden = venue.account.positions.value.size === 0;
    balanceRows.show(venue.account.balances.value.values(), ({ asset }) => asset);
    positionRows.show(venue.account.positions.value.values(), ({ instrument }) => instrument);
  });
  venue.account.balances.watch(draw);
  venue.account.positions.watch(draw);
  venue.account.orders.watch(draw);
  venue.account.state.watch(draw);
  draw();
}

/** Counted from the list of orders, which is newer than the positions. */
function openOrders(venue: Venue, instrument: string): number {
  return [...venue.account.orders.value.values()].filter((order) => pathSymbol(order.instrument) === pathSymbol(instrument)).length;
}

function signed(venue: Venue, position: Position): string {
  const units = venue.units(position.instrument);
  if (!units) return group(position.position);
  const size = parseUnits(position.position, units.sizeDecimals);
  return (size > 0n ? "+" : "") + group(trimZeros(formatUnits(size, units.sizeDecimals), 2));
}
