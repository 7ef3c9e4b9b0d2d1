import { setTimeout as delay } from "node:timers/promises";
import type { LocalAppEvent } from "@leasehold/local";
import type { HeldRequest } from "../../gate.ts";
import type { Outcome, Scenario, Stage } from "../../scenario.ts";
import { takeoverAllowanceMs, until, untilTime } from "../../until.ts";
import { auditStock, summarizeStock } from "./audit.ts";
import { Callers } from "./callers.ts";
import type { Killed, Reading, StockEvidence } from "./evidence.ts";
import { callersAtOnce, described, freshForMs, levelsAfter, movementsBefore } from "./plan.ts";
import { isComputation, isStoring, Warehouse } from "./warehouse.ts";

/** The functions send a request again that has no answer after 2 s. */
const longestHoldMs = 1_500;
/** The others' rush is over by then. */
const leadMs = 4_000;

/** Stock levels that are costly to compute: many ask at once, one computes, and dies over it. */
export class StockLevels implements Scenario {
  readonly system = "stock";
  readonly about = `levels that are costly to compute: one caller at a time does, for ${freshForMs / 1000} s`;
  readonly #stage: Stage;
  readonly #callers: Callers;
  #computations = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#callers = new Callers(stage);
  }

  hear(event: LocalAppEvent): void {
    this.#callers.hear(event);
  }

  prepare(): Promise<void> {
    return this.#callers.start(callersAtOnce.cold);
  }

  async play(): Promise<Outcome> {
    const { gate, app, documents } = this.#stage;
    const goods = new Warehouse(documents, app.tableName("StockLevels/Movements"));
    gate.watch((request) => {
      if (isComputation(request)) this.#computations += 1;
    });
    await delay(leadMs);
    await goods.move(movementsBefore.cold);
    await this.#askCold();
    await delay(freshForMs);
    await goods.move(movementsBefore.killed);
    const { killed, request, expiresAt } = await this.#askAndKill();
    await goods.move(movementsBefore.recovered);
    await this.#callers.ask("bereaved");
    await untilTime(expiresAt + takeoverAllowanceMs);
    await this.#askUntilComputed();
    const wasRefused = !(await request.letThrough());
    const arrival = `the write of ${killed.instance} arrives now: ${wasRefused ? "refused" : "it has LANDED"}`;
    this.#say(wasRefused ? "lost" : "failed", killed.instance, arrival);
    await this.#callers.ask("afterwards");

    const evidence: StockEvidence = {
      readings: this.#callers.readings,
      before: levelsAfter(["cold"]),
      after: levelsAfter(["cold", "killed", "recovered"]),
      log: this.#callers.log,
      computations: this.#computations,
      killed: { ...killed, wasRefused },
    };
    return { checks: auditStock(evidence), inShort: summarizeStock(evidence) };
  }

  /** The computation is held until all others wait for it, but not for so long that it is sent again. */
  async #askCold(): Promise<void> {
    const { gate } = this.#stage;
    const computing = gate.hold((request) => isComputation(request) || undefined);
    const answered = this.#callers.ask("cold");
    const held = await computing;
    const deadline = performance.now() + longestHoldMs;
    const others = callersAtOnce.cold - 1;
    await until(
      "the others to wait",
      () => this.#callers.waiting >= others || performance.now() > deadline || undefined,
    );
    await held.letThrough();
    await answered;
  }

  /** Kills the one that has computed, with its result on the way to the table. */
  async #askAndKill(): Promise<{
    readonly killed: Omit<Killed, "wasRefused">;
    readonly request: HeldRequest<true>;
    readonly expiresAt: number;
  }> {
    const storing = this.#stage.gate.hold((request) => isStoring(request) || undefined);
    const answered = this.#callers.ask("killed");
    const request = await storing;
    const lease = await until("the lease of whoever computes", () => this.#callers.leaseIn(request.request));
    const { instance, fencingToken } = lease;
    await this.#callers.kill(instance);
    const expiresAt = this.#callers.leaseEndsAt(fencingToken);
    this.#say(
      "killed",
      instance.name,
      `SIGKILL: it has computed ${described(levelsAfter(["cold", "killed"]))}, and its write is on the way; ` +
        `its lease stands until ${this.#stage.screen.time(expiresAt)}`,
    );
    await answered;
    return { killed: { instance: instance.name, fencingToken }, request, expiresAt };
  }

  /** A takeover that comes a moment too soon is refused, and its caller has the old value. */
  async #askUntilComputed(): Promise<void> {
    let readings: readonly Reading[] = [];
    while (!readings.some(({ source }) => source === "computed")) {
      readings = await this.#callers.ask("recovered");
    }
  }

  #say(kind: "killed" | "lost" | "failed", who: string, text: string): void {
    this.#stage.screen.event(this.system, kind, who, text);
  }
}
