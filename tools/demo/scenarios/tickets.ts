import type { LocalApp } from "@leasehold/local";
import type { CleaningReport } from "../../../functions/admit-tickets/cleaner.ts";
import type { Served, Standing } from "../../../functions/admit-tickets/department.ts";
import { silenceVariable } from "../../../functions/admit-tickets/schema.ts";
import { errorFieldsIn } from "../../../functions/support/answers.ts";
import { failureIn } from "../instances.ts";
import type { Outcome, Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";
import { NotStaged } from "../tempo.ts";
import {
  type Arrival,
  describeStanding,
  type Fate,
  type Inquiry,
  judgeTickets,
  type TicketsEvidence,
} from "./tickets-audit.ts";

/** How many may wait: the app's own default. */
const mostWaiting = 10;
/** How often a ticket that is alive is heard of. */
const heartbeatMs = 400;
/** How long a service takes. */
const serviceMs = 350;

/** The tickets for loans, in this order: one more than the queue has room for, and another. */
const loans: Readonly<Record<string, Fate>> = {
  L1: "served",
  L2: "served",
  L3: "served",
  L4: "diesWaiting",
  L5: "served",
  L6: "served",
  L7: "served",
  L8: "served",
  L9: "served",
  L10: "served",
  L11: "served",
  L12: "refused",
  L13: "refused",
};

/** The tickets for cards. */
const cards: Readonly<Record<string, Fate>> = {
  C1: "diesServing",
  C2: "served",
  C3: "leaves",
  C4: "served",
};

/** The ticket that enters a second time. */
const enteringAgain = { department: "loans", ticket: "L3" };
/** The ticket that enters when all is over, and is left behind. */
const leftBehind = { department: "cards", ticket: "C5" };

/** Every ticket, in the order of its arrival at its department. */
const arrivals: readonly Arrival[] = Object.entries({ loans, cards }).flatMap(([department, tickets]) =>
  Object.entries(tickets).map(([ticket, fate]) => ({ department, ticket, fate })),
);

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
    const { department, ticket } = enteringAgain;
    const again = await this.#office.ask("enter", department, ticket);
    this.#say("entered", ticket, `enters a second time: ${describeStanding(again)}`);
    both.resolve(undefined);
    await Promise.all(entered.flat());
    const evidence: TicketsEvidence = {
      arrivals,
      inquiries: this.#office.inquiries,
      mostWaiting,
      silenceMs: this.#silenceMs,
      enteredAgain: { ticket, answer: again },
      leftBehind: await this.#leaveOneBehind(),
    };
    this.#progress("everybody has gone, one way or another");
    return judgeTickets(evidence);
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
    const { department, ticket } = leftBehind;
    await this.#office.ask("enter", department, ticket);
    this.#say("silent", ticket, "enters, is in service, and is not heard of any more; nobody comes after it");
    await this.#stage.tempo.untilTime(Date.now() + this.#silenceMs);
    let removed = 0;
    while (removed === 0) {
      removed = await this.#office.clean();
      if (removed === 0) await this.#stage.tempo.delay(cleanEveryMs);
    }
    const answer = await this.#office.ask("heartbeat", department, ticket);
    this.#say("cleaned", undefined, `the cleaner takes ${removed} off; ${ticket} is ${answer.state}`);
    return { ticket, removed, answer };
  }

  #go({ ticket }: Arrival): void {
    this.#gone += 1;
    this.#progress(`${ticket} has gone`);
  }

  #progress(text: string): void {
    this.#stage.screen.progress(this.system, this.#gone, arrivals.length, text);
  }

  #say(kind: Kind, who: string | undefined, text: string): void {
    this.#stage.screen.event(this.system, kind, who, text);
  }
}

/** A customer with a ticket, who acts only on the office's answers. */
class Visitor {
  readonly #office: Office;
  readonly #stage: Stage;
  readonly #arrival: Arrival;

  constructor(office: Office, stage: Stage, arrival: Arrival) {
    this.#office = office;
    this.#stage = stage;
    this.#arrival = arrival;
  }

  /** Comes to the office. */
  async enter(): Promise<Standing> {
    const standing = await this.#ask("enter");
    if (standing.state === "refused") {
      this.#say("refused", `${standing.waiting} wait already, and there is room for ${standing.mostWaiting}`);
    }
    return standing;
  }

  /** Does what it came for, from its entrance on. No service ends before everybody has come. */
  async stay(standing: Standing, everybodyCame: Promise<unknown>): Promise<void> {
    const { fate } = this.#arrival;
    if (standing.state === "refused") return;
    if (fate === "diesWaiting") {
      await this.#hold(everybodyCame);
      this.#say("silent", "dies in the queue: nothing will be heard of it any more");
      return;
    }
    if (fate === "leaves") {
      await this.#hold(everybodyCame);
      await this.#ask("leave");
      this.#say("left", "leaves the queue by itself");
      return;
    }
    let now: Standing = standing;
    while (now.state === "waiting") {
      await this.#stage.tempo.delay(heartbeatMs);
      now = await this.#ask("heartbeat");
    }
    if (now.state !== "serving") {
      this.#say("failed", `waited, and is ${now.state}`);
      return;
    }
    await this.#beServed(everybodyCame);
  }

  async #beServed(everybodyCame: Promise<unknown>): Promise<void> {
    const { department, ticket, fate } = this.#arrival;
    this.#say("serving", `in service at ${department}`);
    await this.#hold(everybodyCame);
    if (fate === "diesServing") {
      this.#say("silent", "dies in service: nothing will be heard of it any more");
      return;
    }
    await this.#stage.tempo.delay(serviceMs);
    await this.#office.next(department, ticket);
  }

  /** Stays as it is, and is heard of, until everybody has come. */
  async #hold(everybodyCame: Promise<unknown>): Promise<void> {
    const came = everybodyCame.then(() => true);
    const beat = (): Promise<boolean> => this.#stage.tempo.delay(heartbeatMs).then(() => false);
    while (!(await Promise.race([came, beat()]))) await this.#ask("heartbeat");
  }

  #ask(action: "enter" | "heartbeat" | "leave"): Promise<Standing> {
    const { department, ticket } = this.#arrival;
    return this.#office.ask(action, department, ticket);
  }

  #say(kind: Kind, text: string): void {
    this.#stage.screen.event("tickets", kind, this.#arrival.ticket, text);
  }
}

/** Asks the function that admits tickets, and writes down what it answers. */
class Office {
  readonly inquiries: Inquiry[] = [];
  readonly #app: LocalApp;

  constructor(app: LocalApp) {
    this.#app = app;
  }

  /** Enters a ticket, or asks for its state. */
  async ask(action: "enter" | "heartbeat" | "leave", department: string, ticket: string): Promise<Standing> {
    return (await this.#record(action, department, ticket)) as Standing;
  }

  /** Ends the service of a ticket. */
  async next(department: string, ticket: string): Promise<void> {
    await this.#record("next", department, ticket);
  }

  /** Has the cleaner at work once, as its schedule calls it. Resolves to how many tickets it took off. */
  async clean(): Promise<number> {
    const schedule = this.#app.spec.schedules.find(({ path }) => path?.endsWith("Tickets/Cleaning"));
    if (schedule === undefined) throw new Error("nothing cleans by a schedule");
    const event = JSON.parse(schedule.input ?? "{}") as object;
    return ((await this.#invoke(schedule.targetArn, event)) as CleaningReport).removed;
  }

  async #record(action: Inquiry["action"], department: string, ticket: string): Promise<Standing | Served> {
    const sentAt = performance.now();
    const answer = (await this.#invoke("Tickets/Admission", { action, department, ticket })) as
      | Standing
      | Served;
    this.inquiries.push({ department, ticket, action, sentAt, answeredAt: performance.now(), answer });
    return answer;
  }

  /** On a busy machine, other visitors may change a line with each try of a call: a conflict is repeated. */
  async #invoke(id: string, event: object, repeats = 3): Promise<unknown> {
    const result = await this.#app.invoke(id, event);
    if (result.functionError === undefined) return result.payload;
    const { errorType, errorMessage } = result.payload as { errorType: string; errorMessage: string };
    const isConflict =
      errorType === "LeaseServiceError" &&
      (errorFieldsIn(errorMessage) as { readonly code?: string }).code === "LEASE_CONFLICT";
    if (isConflict && repeats > 0) return await this.#invoke(id, event, repeats - 1);
    const Kind = failureIn(result) === "timedOut" ? NotStaged : Error;
    const [problem] = errorMessage.split("\n");
    throw new Kind(`${JSON.stringify(event)} was not answered: ${errorType}: ${problem}`);
  }
}
