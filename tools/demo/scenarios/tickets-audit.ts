import type { Served, Standing } from "../../../functions/admit-tickets/department.ts";
import { type Check, check, listed, type Outcome, promise } from "../scenario.ts";

/** What a ticket does by itself. */
export type Fate =
  /** It waits for its turn, and is served. */
  | "served"
  /** It enters, and is not heard of again. */
  | "diesWaiting"
  /** It is not heard of again once it is in service. */
  | "diesServing"
  /** It goes away before its turn. */
  | "leaves"
  /** It comes when the queue is full. */
  | "refused";

/** A ticket as the plan has it, in the order of arrival. */
export interface Arrival {
  readonly department: string;
  readonly ticket: string;
  readonly fate: Fate;
}

/** One thing that was asked for a ticket, and the answer. Times are milliseconds of this process, which never jump. */
export interface Inquiry {
  readonly department: string;
  readonly ticket: string;
  readonly action: "enter" | "heartbeat" | "leave" | "next";
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly answer: Standing | Served;
}

/** All that the audit looks at. */
export interface TicketsEvidence {
  readonly arrivals: readonly Arrival[];
  /** In the order of the answers. */
  readonly inquiries: readonly Inquiry[];
  /** How many may wait. */
  readonly mostWaiting: number;
  /** After this much silence a ticket counts as gone. */
  readonly silenceMs: number;
  /** A ticket that entered a second time, and what it was told then. */
  readonly enteredAgain: { readonly ticket: string; readonly answer: Standing };
  /** The ticket that was left behind for the cleaner, how many that took off, and what was said of it then. */
  readonly leftBehind: { readonly ticket: string; readonly removed: number; readonly answer: Standing };
}

/** Where a ticket stands, in a few words. */
export function describeStanding(standing: Standing): string {
  if (standing.state === "refused") return `refused, since ${standing.waiting} wait`;
  const place = standing.state === "waiting" ? ` as number ${standing.position}` : "";
  return `${standing.ticket} is ${standing.state}${place}`;
}

/** Judges by the answers alone who was in service when, who waited where, and who was turned away. */
export function judgeTickets(evidence: TicketsEvidence): Outcome {
  return { checks: auditTickets(evidence), inShort: summarizeTickets(evidence), late: lateTickets(evidence) };
}

function auditTickets(evidence: TicketsEvidence): Check[] {
  const { arrivals, mostWaiting, enteredAgain, leftBehind } = evidence;
  const services = servicesIn(evidence);
  const fateOf = new Map(arrivals.map(({ ticket, fate }) => [ticket, fate]));
  const comeTo = (...fates: Fate[]): Arrival[] => arrivals.filter(({ fate }) => fates.includes(fate));
  const [place] = standingsOf(evidence, enteredAgain.ticket);
  return [
    ...orders(evidence, services),
    promise("services that overlapped in one department", 0, overlapping(services)),
    check("departments that served at the same time", "yes", areSideBySide(services) ? "yes" : "no"),
    check(
      "tickets refused, with the queue's true length",
      comeTo("refused").length,
      comeTo("refused").filter(({ ticket }) => isRefused(standingsOf(evidence, ticket), mostWaiting)).length,
    ),
    check(
      "a ticket that enters twice has one place",
      place === undefined ? "a place" : describeStanding(place),
      describeStanding(enteredAgain.answer),
    ),
    check(
      "tickets that fell back in the queue",
      "nobody",
      listed(arrivals.flatMap(({ ticket }) => fallsOf(evidence, ticket))),
    ),
    check(
      "living tickets that were not known any more",
      0,
      comeTo("served", "leaves", "diesServing").filter(({ ticket }) => isForgotten(evidence, ticket)).length,
    ),
    check("the next one, after a death in service", "after its silence", afterDeath(services, fateOf)),
    check("tickets that the cleaner took off", 1, leftBehind.removed),
    check("what is said of it then", `${leftBehind.ticket} is absent`, describeStanding(leftBehind.answer)),
  ];
}

/** Says which living tickets were silent for so long that they may have counted as gone. */
function lateTickets({ arrivals, inquiries, silenceMs }: TicketsEvidence): string[] {
  return arrivals.flatMap(({ department, ticket }) => {
    const own = inquiries.filter((one) => one.ticket === ticket && one.department === department);
    const gaps = own.map(({ answeredAt }, index) => answeredAt - (own[index - 1]?.sentAt ?? answeredAt));
    const longest = Math.max(0, ...gaps);
    if (longest < silenceMs) return [];
    const [gap, silence] = [longest, silenceMs].map((ms) => `${(ms / 1000).toFixed(1)} s`);
    return [`${ticket} was not heard of for up to ${gap}, where ${silence} of silence count as gone`];
  });
}

/** Counts what happened, for the last line. */
function summarizeTickets({ inquiries, arrivals }: TicketsEvidence): string {
  const count = (...fates: Fate[]): number => arrivals.filter(({ fate }) => fates.includes(fate)).length;
  return (
    `${count("served")} tickets served in the order of their arrival, ${count("refused")} refused, ` +
    `${count("diesWaiting", "diesServing")} dead passed over, ${inquiries.length} questions`
  );
}

/** Who dies in the queue or leaves it is not served; who dies in service was. */
function orders({ arrivals }: TicketsEvidence, services: readonly Service[]): Check[] {
  const departments = Map.groupBy(arrivals, ({ department }) => department);
  return [...departments].map(([department, own]) =>
    check(
      `order of service at ${department}`,
      namesOf(own.filter(({ fate }) => fate === "served" || fate === "diesServing")),
      namesOf(services.filter((service) => service.department === department)),
    ),
  );
}

function namesOf(some: readonly { readonly ticket: string }[]): string {
  return listed(some.map(({ ticket }) => ticket));
}

/** Where a ticket stood, answer by answer. */
function standingsOf({ inquiries }: TicketsEvidence, ticket: string): Standing[] {
  return inquiries.flatMap(({ ticket: own, action, answer }) =>
    own === ticket && action !== "leave" && "state" in answer ? [answer] : [],
  );
}

function isRefused(standings: readonly Standing[], length: number): boolean {
  const [standing, ...others] = standings;
  if (standing?.state !== "refused" || others.length > 0) return false;
  return standing.waiting === length && standing.mostWaiting === length;
}

/** Position 0 is in service. */
function fallsOf(evidence: TicketsEvidence, ticket: string): string[] {
  const positions = standingsOf(evidence, ticket).map((standing) =>
    standing.state === "waiting" ? standing.position : 0,
  );
  return positions.flatMap((position, index) => {
    const before = positions[index - 1] ?? position;
    return position > before ? [`${ticket} (from ${before} to ${position})`] : [];
  });
}

function isForgotten(evidence: TicketsEvidence, ticket: string): boolean {
  return standingsOf(evidence, ticket).some(({ state }) => state !== "serving" && state !== "waiting");
}

function afterDeath(services: readonly Service[], fateOf: ReadonlyMap<string, Fate>): string {
  const dead = services.find(({ ticket }) => fateOf.get(ticket) === "diesServing");
  if (dead === undefined) return "nobody died";
  const next = services.find(({ department, from }) => department === dead.department && from > dead.from);
  if (next === undefined) return "never";
  return next.from < dead.until ? "too soon" : "after its silence";
}

/** How long a ticket was in service for certain, as its owner knew it: it may have been so for longer. */
interface Service {
  readonly department: string;
  readonly ticket: string;
  /** When its owner learnt of it: not before it began. */
  readonly from: number;
  /** When its owner asked for its end, or when it might have been silent for too long: not after it ended. */
  readonly until: number;
}

/** The services, in the order in which they began. */
function servicesIn({ arrivals, inquiries, silenceMs }: TicketsEvidence): Service[] {
  const services = arrivals.flatMap(({ department, ticket }) => {
    const own = inquiries.filter((one) => one.ticket === ticket && one.department === department);
    const serving = own.filter(isServing);
    const [first] = serving;
    if (first === undefined) return [];
    const end = own.find(({ action }) => action === "next")?.sentAt ?? Number.POSITIVE_INFINITY;
    // What was answered otherwise prolonged nothing.
    const lastHeardOf = Math.max(...serving.map(({ sentAt }) => sentAt));
    return [{ department, ticket, from: first.answeredAt, until: Math.min(end, lastHeardOf + silenceMs) }];
  });
  return services.sort((one, other) => one.from - other.from);
}

/** Counts the services that began before the one before, in the same department, had ended. */
function overlapping(services: readonly Service[]): number {
  const departments = [...Map.groupBy(services, ({ department }) => department).values()];
  return departments.flatMap((own) =>
    own.filter((service, index) => own.slice(0, index).some(({ until }) => service.from < until)),
  ).length;
}

/** Whether two departments served at the same time. */
function areSideBySide(services: readonly Service[]): boolean {
  return services.some((one) =>
    services.some(
      (other) => one.department !== other.department && one.from < other.until && other.from < one.until,
    ),
  );
}

function isServing({ answer }: Inquiry): boolean {
  return "state" in answer && answer.state === "serving";
}
