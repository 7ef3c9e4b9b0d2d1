import { silenceVariable } from "../../../../functions/admit-tickets/schema.ts";
import type { Kind } from "../../marks.ts";
import type { Outcome, Scenario, Stage } from "../../scenario.ts";
import { auditTickets, lateTickets, summarizeTickets } from "./audit.ts";
import { type Arrival, describeStanding, type TicketsEvidence } from "./evidence.ts";
import { Office } from "./office.ts";
import { arrivals, enteringAgain, leftBehind, mostWaiting } from "./plan.ts";
import { Visitor } from "./visitor.ts";

/** The clocks are allowed to differ by a second: the cleaner may come too soon. */
const cleanEveryMs = 500;

/** The others' rush is over by then. */
const leadMs = 6_000;

/** Two departments with one ticket in service each, and a queue in which some die. */
export class Tickets implements Scenario {
  readonly system = "tickets";
  readonly about: string;
  readonly #stage: Stage;
  readonly #office: Office;
  readonly #silenceMs: number;
  #gone = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#office = new Office(stage.app);
    const admission = stage.app.spec.functions.find(({ environment }) => silenceVariable in environment);
    this.#silenceMs = Number(admission?.environment[silenceVariable]);
    this.about =
      `two departments, each with one ticket in service and at most ${mostWaiting} in its queue; ` +
      `who is silent for ${this.#silenceMs / 1000} s is gone`;
  }

  async play(): Promise<Outcome> {
    this.#progress("the office opens in a moment");
    await this.#stage.tempo.delay(leadMs);
    const departments = [...Map.groupBy(arrivals, ({ department }) => department).values()];
    const both = Promise.withResolvers<unknown>();
    const entrances = departments.map((queue) => this.#enterAll(queue, both.promise));
    const entered = await Promise.all(entrances);
    const { department } = this.#arrival(enteringAgain);
    const again = await this.#office.ask("enter", department, enteringAgain);
    this.#say("entered", enteringAgain, `enters a second time: ${describeStanding(again)}`);
    both.resolve(undefined);
    await Promise.all(entered.flat());
    const evidence: TicketsEvidence = {
      arrivals,
      inquiries: this.#office.inquiries,
      mostWaiting,
      silenceMs: this.#silenceMs,
      enteredAgain: { ticket: enteringAgain, answer: again },
      leftBehind: await this.#leaveOneBehind(),
    };
    this.#progress("everybody has gone, one way or another");
    return {
      checks: auditTickets(evidence),
      inShort: summarizeTickets(evidence),
      late: lateTickets(evidence),
    };
  }

  /** One after the other: so the order of arrival is known. Resolves to what they do from then on. */
  async #enterAll(queue: readonly Arrival[], everybodyCame: Promise<unknown>): Promise<Promise<void>[]> {
    const [first, last] = [queue.at(0), queue.at(-1)];
    const names = `${first?.ticket} to ${last?.ticket}`;
    this.#say("entered", undefined, `${names}, one after the other, at ${first?.department}`);
    const stays: Promise<void>[] = [];
    for (const arrival of queue) {
      const visitor = new Visitor(this.#office, this.#stage, arrival);
      const stay = visitor.stay(await visitor.enter(), everybodyCame).then(() => this.#go(arrival));
      // The reader of the list awaits it, perhaps later.
      stay.catch(() => undefined);
      stays.push(stay);
    }
    return stays;
  }

  /** A ticket enters and becomes silent. No ticket comes after it, so only the cleaner can notice. */
  async #leaveOneBehind(): Promise<TicketsEvidence["leftBehind"]> {
    const { department } = this.#arrival("C1");
    await this.#office.ask("enter", department, leftBehind);
    this.#say(
      "silent",
      leftBehind,
      "enters, is in service, and is not heard of any more; nobody comes after it",
    );
    await this.#stage.tempo.untilTime(Date.now() + this.#silenceMs);
    let removed = 0;
    while (removed === 0) {
      removed = await this.#office.clean();
      if (removed === 0) await this.#stage.tempo.delay(cleanEveryMs);
    }
    const answer = await this.#office.ask("heartbeat", department, leftBehind);
    this.#say("cleaned", undefined, `the cleaner takes ${removed} off; ${leftBehind} is ${answer.state}`);
    return { ticket: leftBehind, removed, answer };
  }

  #go({ ticket }: Arrival): void {
    this.#gone += 1;
    this.#progress(`${ticket} has gone`);
  }

  #progress(text: string): void {
    this.#stage.screen.progress(this.system, this.#gone, arrivals.length, text);
  }

  #arrival(ticket: string): Arrival {
    const found = arrivals.find((arrival) => arrival.ticket === ticket);
    if (found === undefined) throw new Error(`nobody comes with the ticket ${ticket}`);
    return found;
  }

  #say(kind: Kind, who: string | undefined, text: string): void {
    this.#stage.screen.event(this.system, kind, who, text);
  }
}
