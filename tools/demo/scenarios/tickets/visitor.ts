import type { Standing } from "../../../../functions/admit-tickets/department.ts";
import type { Kind } from "../../marks.ts";
import type { Stage } from "../../scenario.ts";
import type { Screen } from "../../screen.ts";
import type { Tempo } from "../../tempo.ts";
import type { Arrival } from "./evidence.ts";
import type { Office } from "./office.ts";
import { heartbeatMs, serviceMs } from "./plan.ts";

/** A customer with a ticket, who acts only on the office's answers. */
export class Visitor {
  readonly #office: Office;
  readonly #screen: Screen;
  readonly #tempo: Tempo;
  readonly #arrival: Arrival;

  constructor(office: Office, { screen, tempo }: Stage, arrival: Arrival) {
    this.#office = office;
    this.#screen = screen;
    this.#tempo = tempo;
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
      this.#say("left", "leaves the queue of its own accord");
      return;
    }
    let now: Standing = standing;
    while (now.state === "waiting") {
      await this.#tempo.delay(heartbeatMs);
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
    await this.#tempo.delay(serviceMs);
    await this.#office.next(department, ticket);
  }

  /** Stays as it is, and is heard of, until everybody has come. */
  async #hold(everybodyCame: Promise<unknown>): Promise<void> {
    const came = everybodyCame.then(() => true);
    const beat = (): Promise<boolean> => this.#tempo.delay(heartbeatMs).then(() => false);
    while (!(await Promise.race([came, beat()]))) await this.#ask("heartbeat");
  }

  #ask(action: "enter" | "heartbeat" | "leave"): Promise<Standing> {
    const { department, ticket } = this.#arrival;
    return this.#office.ask(action, department, ticket);
  }

  #say(kind: Kind, text: string): void {
    this.#screen.event("tickets", kind, this.#arrival.ticket, text);
  }
}
