import type { LocalApp } from "@leasehold/local";
import type { CleaningReport } from "../../../functions/admit-tickets/cleaner.ts";
import type { Standing } from "../../../functions/admit-tickets/department.ts";
import { agentKey, silenceVariable } from "../../../functions/admit-tickets/schema.ts";
import { errorFieldsIn } from "../../../functions/support/answers.ts";
import { failureIn } from "../instances.ts";
import { grantsIn, overlaps, takenOver } from "../leases.ts";
import { check, listed, type Outcome, promise, type Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";
import { NotStaged } from "../tempo.ts";

/** What a ticket does by itself. */
type Fate =
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
interface Arrival {
  readonly department: string;
  readonly ticket: string;
  readonly fate: Fate;
}

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
const leftBehind: Arrival = { department: "cards", ticket: "C5", fate: "diesServing" };

/** Every ticket, in the order of its arrival at its department. */
const arrivals: readonly Arrival[] = Object.entries({ loans, cards }).flatMap(([department, tickets]) =>
  Object.entries(tickets).map(([ticket, fate]) => ({ department, ticket, fate })),
);

function ticketsThat(...fates: readonly Fate[]): string[] {
  return arrivals.flatMap(({ ticket, fate }) => (fates.includes(fate) ? [ticket] : []));
}

/** Whether a ticket of this fate has its turn. */
function isServed(fate: Fate | undefined): boolean {
  return fate === "served" || fate === "diesServing";
}

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
    this.#say("entered", ticket, `enters a second time: ${describe(again)}`);
    both.resolve(undefined);
    await Promise.all(entered.flat());
    const left = await this.#leaveOneBehind();
    this.#progress("everybody has gone, one way or another");
    return this.#audit(again, left);
  }

  /**
   * Judges by the services that the table has granted, and by what was answered.
   *
   * A department has one agent here, whose lease is the service of the ticket that owns it.
   */
  async #audit(again: Standing, left: Standing): Promise<Outcome> {
    const departments = Map.groupBy([...arrivals, leftBehind], ({ department }) => department);
    const services = await this.#stage.tempo.until("the table's stream to show every service", async () => {
      const history = await this.#stage.history();
      const found = new Map(
        [...departments.keys()].map((name) => [name, grantsIn(history, agentKey(name, 1))] as const),
      );
      // The cleaner's is the last one.
      return found.get(leftBehind.department)?.at(-1)?.from?.owner === leftBehind.ticket ? found : undefined;
    });
    const fates = new Map([...arrivals, leftBehind].map(({ ticket, fate }) => [ticket, fate]));
    const granted = [...services.values()].flat();
    const dead = [...fates].flatMap(([ticket, fate]) => (fate.startsWith("dies") ? [ticket] : []));
    const taken = takenOver(granted, (owner) => dead.includes(owner));
    const refused = ticketsThat("refused");
    const overlapping = [...services.values()].reduce((sum, own) => sum + overlaps(own), 0);
    const [place] = this.#office.answersTo(enteringAgain.ticket);
    return {
      checks: [
        // One that dies in the queue may be called before its silence is over. The cleaner is no ticket.
        ...[...departments].map(([department, own]) =>
          check(
            `order of service at ${department}`,
            listed(own.map(({ ticket }) => ticket).filter((ticket) => isServed(fates.get(ticket)))),
            listed(
              (services.get(department) ?? [])
                .map(({ owner }) => owner)
                .filter((owner) => isServed(fates.get(owner))),
            ),
          ),
        ),
        promise("services that overlapped in one department", 0, overlapping),
        check(
          "services taken over, by the next or by the cleaner, from",
          listed(granted.map(({ owner }) => owner).filter((owner) => dead.includes(owner))),
          listed(taken),
        ),
        check(
          "tickets refused, with the queue's true length",
          listed(refused),
          listed(refused.filter((ticket) => isRefused(this.#office.answersTo(ticket)))),
        ),
        check("a ticket that enters twice has one place", describe(place), describe(again)),
        check(
          "what is said of one that the cleaner took off",
          `${leftBehind.ticket} is absent`,
          describe(left),
        ),
      ],
      inShort:
        `${ticketsThat("served").length} tickets served in the order of their arrival, ${refused.length} refused, ` +
        `${ticketsThat("diesWaiting", "diesServing").length} dead passed over`,
      late: this.#office.silences(this.#silenceMs),
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
  async #leaveOneBehind(): Promise<Standing> {
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
    return answer;
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
  readonly #app: LocalApp;
  /** By ticket. Times are milliseconds of this process, which never jump. */
  readonly #answers = new Map<
    string,
    { readonly sentAt: number; readonly at: number; readonly answer: Standing }[]
  >();

  constructor(app: LocalApp) {
    this.#app = app;
  }

  /** Enters a ticket, or asks for its state. */
  async ask(action: "enter" | "heartbeat" | "leave", department: string, ticket: string): Promise<Standing> {
    const sentAt = performance.now();
    const answer = (await this.#invoke("Tickets/Admission", { action, department, ticket })) as Standing;
    const own = this.#answers.get(ticket) ?? [];
    this.#answers.set(ticket, [...own, { sentAt, at: performance.now(), answer }]);
    return answer;
  }

  /** Ends the service of a ticket. */
  async next(department: string, ticket: string): Promise<void> {
    await this.#invoke("Tickets/Admission", { action: "next", department, ticket });
  }

  /** Has the cleaner at work once, as its schedule calls it. Resolves to how many tickets it took off. */
  async clean(): Promise<number> {
    const schedule = this.#app.spec.schedules.find(({ path }) => path?.endsWith("Tickets/Cleaning"));
    if (schedule === undefined) throw new Error("nothing cleans by a schedule");
    const event = JSON.parse(schedule.input ?? "{}") as object;
    return ((await this.#invoke(schedule.targetArn, event)) as CleaningReport).removed;
  }

  /** Where a ticket stood, answer by answer. */
  answersTo(ticket: string): Standing[] {
    return (this.#answers.get(ticket) ?? []).map(({ answer }) => answer);
  }

  /** Says which tickets were not heard of for so long that they may have counted as gone. */
  silences(silenceMs: number): string[] {
    return [...this.#answers].flatMap(([ticket, own]) => {
      const gaps = own.map(({ at }, index) => at - (own[index - 1]?.sentAt ?? at));
      const longest = Math.max(...gaps);
      if (longest < silenceMs || ticket === leftBehind.ticket) return [];
      const [gap, silence] = [longest, silenceMs].map((ms) => `${(ms / 1000).toFixed(1)} s`);
      return [`${ticket} was not heard of for up to ${gap}, where ${silence} of silence count as gone`];
    });
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

/** Where a ticket stands, in a few words. */
function describe(standing: Standing | undefined): string {
  if (standing === undefined) return "nowhere";
  if (standing.state === "refused") return `refused, since ${standing.waiting} wait`;
  const place = standing.state === "waiting" ? ` as number ${standing.position}` : "";
  return `${standing.ticket} is ${standing.state}${place}`;
}

function isRefused([answer, ...others]: readonly Standing[]): boolean {
  return answer?.state === "refused" && answer.waiting === mostWaiting && others.length === 0;
}
