import type { LocalAppEvent } from "@leasehold/local";
import { cacheKeyPrefix } from "../../../../functions/resource-cache/schema.ts";
import type { HeldRequest } from "../../gate.ts";
import { readGrants } from "../../grants.ts";
import type { Outcome, Scenario, Stage } from "../../scenario.ts";
import { auditStock, lateAnswers, summarizeStock } from "./audit.ts";
import { Callers } from "./callers.ts";
import type { Killed, Reading, StockEvidence } from "./evidence.ts";
import {
  callersAtOnce,
  described,
  levelsAfter,
  movementsBefore,
  plannedFreshForMs,
  warehouse,
} from "./plan.ts";
import { isComputation, isStoring, Warehouse } from "./warehouse.ts";

/** The functions send a request again that has no answer after 2 s. */
const longestHoldMs = 1_500;
/** The others' rush is over by then. */
const leadMs = 4_000;

/** Stock levels that are costly to compute: many ask at once, one computes, and dies over it. */
export class StockLevels implements Scenario {
  readonly system = "stock";
  readonly about: string;
  readonly #stage: Stage;
  readonly #callers: Callers;
  readonly #freshForMs: number;
  readonly #tardy: string[] = [];
  #computations = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#callers = new Callers(stage);
    this.#freshForMs = stage.tempo.ms(plannedFreshForMs);
    this.about = `levels that are costly to compute: one caller at a time does, for ${this.#freshForMs / 1000} s`;
  }

  hear(event: LocalAppEvent): void {
    this.#callers.hear(event);
  }

  prepare(): Promise<void> {
    return this.#callers.start(callersAtOnce.cold);
  }

  async play(): Promise<Outcome> {
    const { gate, app, documents, tempo } = this.#stage;
    const goods = new Warehouse(documents, app.tableName("StockLevels/Movements"));
    gate.watch((request) => {
      if (isComputation(request)) this.#computations += 1;
    });
    this.#progress(0, "nobody has asked for the levels");
    await tempo.delay(leadMs);
    await goods.move(movementsBefore.cold);
    await this.#askCold();
    this.#progress(1, `${callersAtOnce.cold} callers at once, 1 computation`);
    await tempo.delay(plannedFreshForMs);
    await goods.move(movementsBefore.killed);
    const { killed, request, expiresAt } = await this.#askAndKill();
    this.#progress(2, `${killed.instance} was killed while it computed; the others have the old value`);
    await goods.move(movementsBefore.recovered);
    await this.#callers.ask("bereaved");
    this.#expectBefore(expiresAt, "the calls beside the dead one's lease");
    this.#progress(3, `the lease of ${killed.instance}, who is dead, stands`);
    await tempo.untilTime(expiresAt + tempo.takeoverAllowanceMs);
    const computedAt = Date.now();
    await this.#askUntilComputed();
    this.#progress(4, "another has taken over, and computed");
    const wasRefused = !(await request.letThrough());
    const arrival = `the write of ${killed.instance} arrives now: ${wasRefused ? "refused" : "it has LANDED"}`;
    this.#say(wasRefused ? "lost" : "failed", killed.instance, arrival);
    await this.#callers.ask("afterwards");
    this.#expectBefore(computedAt + this.#freshForMs, "the calls for the newer value");
    this.#progress(5, "everybody has the newer value");

    const evidence: StockEvidence = {
      readings: this.#callers.readings,
      before: levelsAfter(["cold"]),
      after: levelsAfter(["cold", "killed", "recovered"]),
      grants: await readGrants(
        this.#stage,
        this.#callers.instances,
        cacheKeyPrefix + warehouse,
        this.#callers.log,
      ),
      log: this.#callers.log,
      computations: this.#computations,
      killed: { ...killed, wasRefused },
      tardy: this.#tardy,
    };
    return { checks: auditStock(evidence), inShort: summarizeStock(evidence), late: lateAnswers(evidence) };
  }

  /** The computation is held until all others wait for it, but not for so long that its sender gives it up. */
  async #askCold(): Promise<void> {
    const { gate, tempo } = this.#stage;
    const computing = gate.hold((request) => isComputation(request) || undefined);
    const answered = this.#callers.ask("cold");
    const held = await computing;
    const deadline = performance.now() + longestHoldMs;
    const others = callersAtOnce.cold - 1;
    await tempo.until(
      "the others to wait",
      () => this.#callers.waiting >= others || performance.now() > deadline || undefined,
    );
    const computedAt = Date.now();
    await held.letThrough();
    await answered;
    this.#expectBefore(computedAt + this.#freshForMs, "the calls for a value that nobody had");
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
    const lease = await this.#stage.tempo.until("the lease of the caller that computes", () =>
      this.#callers.leaseIn(request.request),
    );
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
    this.#expectBefore(expiresAt, "the calls beside the killed one");
    return { killed: { instance: instance.name, fencingToken }, request, expiresAt };
  }

  /** A takeover that comes a moment too soon is refused, and its caller has the old value. */
  async #askUntilComputed(): Promise<void> {
    let readings: readonly Reading[] = [];
    while (!readings.some(({ source }) => source === "computed")) {
      readings = await this.#callers.ask("recovered");
    }
  }

  /** Takes down what came so late that it shows something else. */
  #expectBefore(deadline: number, what: string): void {
    const lateMs = Date.now() - deadline;
    if (lateMs > 0) this.#tardy.push(`${what} were answered ${(lateMs / 1000).toFixed(1)} s too late`);
  }

  #progress(done: number, text: string): void {
    this.#stage.screen.progress(this.system, done, Object.keys(callersAtOnce).length, text);
  }

  #say(kind: "killed" | "lost" | "failed", who: string, text: string): void {
    this.#stage.screen.event(this.system, kind, who, text);
  }
}
