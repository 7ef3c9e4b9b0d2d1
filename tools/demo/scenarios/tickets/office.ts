import type { LocalApp } from "@leasehold/local";
import type { CleaningReport } from "../../../../functions/admit-tickets/cleaner.ts";
import type { Served, Standing } from "../../../../functions/admit-tickets/department.ts";
import { errorFieldsIn } from "../../../../functions/support/answers.ts";
import { NotStaged } from "../../endings.ts";
import { failureIn } from "../../failure-in.ts";
import type { Inquiry } from "./evidence.ts";

const functionId = "Tickets/Admission";

/** Asks the function that admits tickets, and writes down what it answers. */
export class Office {
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
    const answer = (await this.#invoke(functionId, { action, department, ticket })) as Standing | Served;
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
