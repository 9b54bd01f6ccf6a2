// The head of the fair-access view: which replica this is, how long orders and market data wait, and what comes of it.

import type { ClockStatus } from "../../api/fair-types.ts";
import { byId, h, setText } from "../../base/dom.ts";
import { capital, group, showSpan } from "../../base/format.ts";
import { type FairLook, lateWords, withTarget } from "../../state/fair-access.ts";
import type { Venue } from "../../state/venue.ts";
import { shownView } from "../view-tabs.ts";

export const CLOCK_WORDS: Record<ClockStatus, string> = { good: "Good", wide: "Too wide to stamp", unknown: "Unknown: stamps nothing" };

export function fairHeadView(venue: Venue): void {
  const { fair: desk } = venue;
  const who = h("span.who", { id: "fair-who" }, "–");
  const does = h("span.phase", { id: "fair-does" });
  const delay = h("span.last", { id: "fair-delay" }, "–");
  const under = h("span.change.muted", { id: "fair-delay-words" });
  const facts = {
    unfair: h("dd", { id: "fair-unfair" }), held: h("dd"), release: h("dd", { id: "fair-release" }), late: h("dd", { id: "fair-late" }), clock: h("dd", { id: "fair-clock" }),
  };
  const fact = (name: string, value: HTMLElement, title: string): HTMLElement => h("div", { title }, h("dt", {}, name), value);
  const words = h("p.fair-words", { id: "fair-words" });
  const trouble = h("p.sell", { id: "fair-trouble", role: "status", hidden: true });
  byId("fair-head").append(
    h("div.picker", {}, who, h("span.sub", {}, does)),
    h("div.price", {}, h("span", {}, h("span.sr", {}, "Orders wait "), delay), under),
    h("dl.facts", {},
      fact("Unfair orders", facts.unfair, "Share of recent orders that left the hold after one with a later stamp"),
      fact("Held now", facts.held, "Orders in the hold"),
      fact("Market data waits", facts.release, "From the making of an entry until every replica shows what it changed, d_h"),
      fact("Late data", facts.late, "Share of the last publications that came after their release time: to any replica, where this one leads; else here"),
      fact("Clock here", facts.clock, "How far this replica's clock is off at most, and whether it may stamp")),
    words, trouble,
  );

  const draw = (): void => {
    trouble.hidden = desk.trouble.value === null;
    setText(trouble, desk.trouble.value === null ? "" : `No recent answer, so these figures stand still: ${desk.trouble.value}`);
    const look = desk.look.value;
    if (!look) return;
    const { fair: { clock, sequencer, release, is_sequencing }, cluster } = look;
    setText(who, `Replica ${cluster.replica}`);
    does.dataset["phase"] = is_sequencing ? "open" : "passes";
    setText(does, doesWords(look));
    setText(delay, sequencer ? showSpan(sequencer.delay_ns) : "Off");
    setText(under, sequencer
      ? is_sequencing ? "hold of orders after their stamps (d_s): the first at any gateway goes first" : "was d_s when this replica led last"
      : "orders are taken as they come");
    setText(facts.unfair, sequencer ? withTarget(sequencer.unfair_recent_ppm, sequencer.target_ppm) : "–");
    setText(facts.held, sequencer ? group(String(sequencer.held)) : "–");
    setText(facts.release, release ? showSpan(release.delay_ns) : "Not at all");
    setText(facts.late, release ? lateWords(release, desk.history.latePpm).share : "–");
    setText(facts.clock, clock ? `${CLOCK_WORDS[clock.status]}${clock.bound_ns === null ? "" : `, ± ${showSpan(clock.bound_ns)}`}` : "–");
    words.replaceChildren(...explain(look));
    if (shownView.value === "fair") document.title = sequencer ? `d_s ${showSpan(sequencer.delay_ns)} · Walras` : "Fair access · Walras";
  };
  desk.look.watch(draw);
  desk.trouble.watch(draw);
  shownView.watch(draw);
}

function doesWords({ fair: { is_sequencing, gateway }, cluster: { leader, replica } }: FairLook): string {
  if (is_sequencing) return "Leads: orders are sequenced here";
  const to = gateway?.leader ?? leader;
  if (to === null) return "Nobody is known to lead";
  return to === replica ? "Leads" : `Gateway: passes orders on to replica ${to}`;
}

function explain({ fair: { sequencer, release, is_sequencing }, cluster: { leader, replicas } }: FairLook): Node[] {
  const said: Node[] = [];
  const say = (...parts: (string | Node)[]): void => void said.push(...parts.map((part) => (typeof part === "string" ? document.createTextNode(part) : part)));
  if (sequencer && !is_sequencing) {
    const page = replicas.find(({ replica }) => replica === leader)?.http;
    say("Figures of orders are from when this replica led last. ");
    if (leader !== null) say("Now ", page ? h("a", { href: `http://${page}/#fair` }, `replica ${leader}`) : `replica ${leader}`, " sequences them. ");
  }
  if (sequencer?.target_ppm === null) say("d_s is fixed. ");
  if (!sequencer) say("Orders are not held: fair_access.sequencing switches that on. ");
  if (!release) say("Market data is given out as it comes: fair_access.release holds it, so that everybody sees it at the same instant.");
  else if (release.late > 0) say(`Of ${group(String(release.publications))} publications ${group(String(release.late))} came after their time, the latest by ${showSpan(release.late_ns_max)}.`);
  else say(`All ${group(String(release.publications))} publications came before their time.`);
  const silent = release ? lateWords(release, null).silent : "";
  if (silent !== "") say(` ${capital(silent)}: its link is lost, or it tells nothing. Market data is judged by what the others tell.`);
  for (const replica of release?.judged?.outliers ?? []) say(` Reports of replica ${replica} do not count: its clock or its link is too far from the others'.`);
  return said;
}
