import { isDeepStrictEqual } from "node:util";
import { BatchWriteCommand } from "@aws-sdk/lib-dynamodb";
import type { InvokeResult } from "@leasehold/local";
import type { CacheAnswer } from "../../../functions/resource-cache/cache.ts";
import {
  cacheKeyPrefix,
  freshForVariable,
  movementsPartition,
} from "../../../functions/resource-cache/schema.ts";
import type { StockLevels as Levels } from "../../../functions/resource-cache/stock-levels.ts";
import type { GateRequest, HeldRequest } from "../gate.ts";
import { failureIn, type Instance, Instances } from "../instances.ts";
import { endOfLease, overlaps, ranOut, takenOver, type WasCutShort } from "../leases.ts";
import { check, listed, type Outcome, promise, type Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";
import type { Tempo } from "../tempo.ts";

/**
 * The requested values, in this order.
 *
 * - `cold`: the value was never computed, and all callers want it at once.
 * - `killed`: it is past its time, and its computing process dies.
 * - `bereaved`: the dead process's lease has not ended.
 * - `recovered`: it has.
 * - `afterwards`: the dead process's write has arrived.
 */
type Round = "cold" | "killed" | "bereaved" | "recovered" | "afterwards";

/** How many ask at once in each round. */
const callersAtOnce: Readonly<Record<Round, number>> = {
  cold: 12,
  killed: 4,
  bereaved: 4,
  // The next caller would find the new value, or the lock just released.
  recovered: 1,
  afterwards: 4,
};

/** One call, and what came of it. */
interface Reading {
  readonly round: Round;
  readonly instance: string;
  readonly source: CacheAnswer<Levels>["source"] | "died" | "failed" | "timedOut";
  /** Absent where there was no answer. */
  readonly value?: Levels;
}

/** A call that was killed between its computation and the storing of it. */
interface Killed {
  readonly instance: string;
  readonly fencingToken: number;
}

/** How long a value is good, where nothing is stretched. The app's is a minute. */
const plannedFreshForMs = 4_000;

/** What the functions are told of it. */
export function stockSettings(tempo: Tempo): Readonly<Record<string, string>> {
  return { [freshForVariable]: String(tempo.ms(plannedFreshForMs)) };
}

/** The warehouse whose levels everybody wants. */
const warehouse = "north";

/** Goods that came in, or went out. */
interface Movement {
  readonly product: string;
  readonly quantity: number;
}

/** What has moved before each round. */
const movementsBefore: Partial<Record<Round, readonly Movement[]>> = {
  cold: [
    { product: "mug", quantity: 20 },
    { product: "lamp", quantity: 30 },
    { product: "mug", quantity: -8 },
  ],
  killed: [{ product: "mug", quantity: 5 }],
  recovered: [{ product: "lamp", quantity: -3 }],
};

/** Longer than any lease here: every caller gets an answer. */
const waitMs = 14_000;
/** The functions send a request again that has no answer after 2 s. */
const longestHoldMs = 1_500;
/** The others' rush is over by then. */
const leadMs = 4_000;

const questions: Readonly<Record<Round, string>> = {
  cold: "12 times at once: nobody has computed the levels yet",
  killed: "4 times at once: the value is too old, and the caller that computes it will be killed",
  bereaved: "4 times at once: the dead one's lease stands",
  recovered: "once: the dead one's lease has ended",
  afterwards: "4 times at once: the dead one's write has come too late",
};

/** Stock levels that are costly to compute: many ask at once, one computes, and dies over it. */
export class StockLevels implements Scenario {
  readonly system = "stock";
  readonly about: string;
  readonly #stage: Stage;
  readonly #instances: Instances;
  readonly #freshForMs: number;
  readonly #readings: Reading[] = [];
  readonly #tardy: string[] = [];
  #computations = 0;
  #movements = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#instances = new Instances(stage, {
      functionId: "StockLevels/Levels",
      nameOf: (index) => `S${index + 1}`,
      key: cacheKeyPrefix + warehouse,
      onLeaseEvent: ({ instance, at, event }) => {
        if (event.type !== "takeover") return;
        const since = ((at - event.from.expiresAt) / 1000).toFixed(2);
        this.#say("takeover", instance, `from ${event.from.owner}, whose lease had ended ${since} s ago`);
      },
    });
    this.#freshForMs = stage.tempo.ms(plannedFreshForMs);
    this.about = `levels that are costly to compute: one caller at a time does, for ${this.#freshForMs / 1000} s`;
  }

  /** Has its instances started, by calls that do not touch one another. */
  async prepare(): Promise<void> {
    const calls = Array.from({ length: callersAtOnce.cold }, (_, index) =>
      this.#instances.deliver({ warehouse: `site-${index + 1}` }),
    );
    await Promise.all(calls.map(({ result }) => result));
    const names = new Set(calls.map(({ requestId }) => this.#instances.of(requestId)?.name));
    const text = `${names.size} instances, by calls for a warehouse each: nobody waits for anybody`;
    this.#say("started", undefined, text);
  }

  async play(): Promise<Outcome> {
    const { gate, tempo } = this.#stage;
    gate.watch((request) => {
      if (isComputation(request)) this.#computations += 1;
    });
    this.#progress(0, "nobody has asked for the levels");
    await tempo.delay(leadMs);
    await this.#move(movementsBefore.cold);
    await this.#askCold();
    this.#progress(1, `${callersAtOnce.cold} callers at once, 1 computation`);
    await tempo.delay(plannedFreshForMs);
    await this.#move(movementsBefore.killed);
    const { killed, request, expiresAt } = await this.#askAndKill();
    this.#progress(2, `${killed.instance} was killed while it computed; the others have the old value`);
    await this.#move(movementsBefore.recovered);
    await this.#ask("bereaved");
    this.#expectBefore(expiresAt, "the calls beside the dead one's lease");
    this.#progress(3, `the lease of ${killed.instance}, who is dead, stands`);
    await tempo.untilTime(expiresAt + tempo.takeoverAllowanceMs);
    const computedAt = Date.now();
    await this.#askUntilComputed();
    this.#progress(4, "another has taken over, and computed");
    const wasRefused = !(await request.letThrough());
    const arrival = `the write of ${killed.instance} arrives now: ${wasRefused ? "refused" : "it has LANDED"}`;
    this.#say(wasRefused ? "lost" : "failed", killed.instance, arrival);
    await this.#ask("afterwards");
    this.#expectBefore(computedAt + this.#freshForMs, "the calls for the newer value");
    this.#progress(5, "everybody has the newer value");

    return this.#audit(killed, wasRefused);
  }

  /** Judges by what the callers were given, and by the leases that the table has granted. */
  async #audit(killed: Killed, wasRefused: boolean): Promise<Outcome> {
    const grants = await this.#instances.grants();
    const wasCutShort: WasCutShort = (owner, fencingToken) =>
      owner === killed.instance && fencingToken === killed.fencingToken;
    const count = (round: Round, ...sources: Reading["source"][]): number =>
      this.#readings.filter((one) => one.round === round && sources.includes(one.source)).length;
    const stale = count("killed", "stale") + count("bereaved", "stale");
    return {
      checks: [
        check("callers that computed a value that nobody had", 1, count("cold", "computed")),
        check(
          "callers that got it from that one",
          callersAtOnce.cold - 1,
          count("cold", "otherCall", "cache"),
        ),
        check(
          "callers that got the old value meanwhile",
          callersAtOnce.killed - 1 + callersAtOnce.bereaved,
          stale,
        ),
        check("callers that computed it after the dead one's lease", 1, count("recovered", "computed")),
        check("computations, by their reads of the movements", 3, this.#computations),
        promise("leases that overlapped in time", 0, overlaps(grants)),
        check("takeovers, from", killed.instance, listed(takenOver(grants, wasCutShort))),
        promise("the dead one's write, when it arrived", "refused", wasRefused ? "refused" : "landed"),
        check("right answers; the killed one gave none", this.#readings.length - 1, this.#rightAnswers()),
      ],
      inShort:
        `${this.#readings.length} calls, ${this.#computations} computations, the old value ${stale} times, ` +
        "1 late write refused",
      late: [
        ...this.#tardy,
        ...this.#readings.flatMap(({ round, instance, source }) =>
          source === "timedOut" ? [`${instance} gave no answer in its time (${round})`] : [],
        ),
        ...ranOut(grants, this.#instances.log, wasCutShort),
      ],
    };
  }

  /** What is stale is the value from before; everything else is the value of its time. */
  #rightAnswers(): number {
    const [before, after] = [levelsAfter(["cold"]), levelsAfter(["cold", "killed", "recovered"])];
    return this.#readings.filter(({ round, source, value }) =>
      isDeepStrictEqual(value, round === "cold" || source === "stale" ? before : after),
    ).length;
  }

  /** The computation is held until all others wait for it, but not for so long that its sender gives it up. */
  async #askCold(): Promise<void> {
    const { gate, tempo } = this.#stage;
    const computing = gate.hold((request) => isComputation(request) || undefined);
    const answered = this.#ask("cold");
    const held = await computing;
    const deadline = performance.now() + longestHoldMs;
    const others = callersAtOnce.cold - 1;
    const waiting = (): number =>
      this.#instances.log.filter(({ event }) => event.type === "contended").length;
    await tempo.until(
      "the others to wait",
      () => waiting() >= others || performance.now() > deadline || undefined,
    );
    const computedAt = Date.now();
    await held.letThrough();
    await answered;
    this.#expectBefore(computedAt + this.#freshForMs, "the calls for a value that nobody had");
  }

  /** Kills the one that has computed, with its result on the way to the table. */
  async #askAndKill(): Promise<{
    readonly killed: Killed;
    readonly request: HeldRequest<true>;
    readonly expiresAt: number;
  }> {
    const storing = this.#stage.gate.hold((request) => isStoring(request) || undefined);
    const answered = this.#ask("killed");
    const request = await storing;
    const lease = await this.#stage.tempo.until("the lease of the caller that computes", () =>
      this.#leaseIn(request.request),
    );
    const { instance, fencingToken } = lease;
    await this.#stage.app.kill(instance.environmentId);
    const ofLease = this.#instances.log.filter(
      ({ event }) => "fencingToken" in event && event.fencingToken === fencingToken,
    );
    const expiresAt = endOfLease(ofLease);
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
      readings = await this.#ask("recovered");
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

  /** Asks as often as the round wants, at once. Resolves when all have answered. */
  async #ask(round: Round): Promise<readonly Reading[]> {
    const amount = callersAtOnce[round];
    this.#say("asked", undefined, questions[round]);
    const readings = await Promise.all(Array.from({ length: amount }, () => this.#call(round)));
    this.#readings.push(...readings);
    this.#tell(readings);
    return readings;
  }

  /** The lease under which a result is stored, which carries its fencing token. */
  #leaseIn({
    body,
  }: GateRequest): { readonly instance: Instance; readonly fencingToken: number } | undefined {
    const text = JSON.stringify(body);
    for (const { event } of this.#instances.log) {
      if (event.type !== "acquired" || !text.includes(`"${event.fencingToken}"`)) continue;
      const instance = this.#instances.named(event.owner);
      if (instance !== undefined) return { instance, fencingToken: event.fencingToken };
    }
    return undefined;
  }

  async #call(round: Round): Promise<Reading> {
    const { requestId, result } = this.#instances.deliver({ warehouse, waitMs, retry: "fullJitter" });
    const outcome = await result;
    return { round, instance: this.#instances.of(requestId)?.name ?? "?", ...answerOf(outcome) };
  }

  #tell(readings: readonly Reading[]): void {
    const given = (...sources: Reading["source"][]): readonly Reading[] =>
      readings.filter(({ source }) => sources.includes(source));
    for (const { instance, value } of given("computed")) {
      this.#say("computed", instance, `${described(value ?? {})}`);
    }
    const [shared, stale] = [given("otherCall", "cache"), given("stale")];
    const first = (some: readonly Reading[]): string => described(some[0]?.value ?? {});
    if (shared.length > 0)
      this.#say("shared", undefined, `${first(shared)}, to ${shared.length} callers that did not compute`);
    if (stale.length > 0)
      this.#say("stale", undefined, `${first(stale)}, the old value, to ${stale.length} callers at once`);
    for (const { instance } of given("failed", "timedOut")) this.#say("failed", instance, "gave no value");
  }

  /** Writes down what has come in and gone out. */
  async #move(movements: readonly Movement[] = []): Promise<void> {
    const { app, documents } = this.#stage;
    const puts = movements.map((movement) => {
      this.#movements += 1;
      const Item = { pk: movementsPartition(warehouse), sk: `${this.#movements}`, ...movement };
      return { PutRequest: { Item } };
    });
    const table = app.tableName("StockLevels/Movements");
    await documents.send(new BatchWriteCommand({ RequestItems: { [table]: puts } }));
  }

  #say(kind: Kind, who: string | undefined, text: string): void {
    this.#stage.screen.event(this.system, kind, who, text);
  }
}

function answerOf(result: InvokeResult): Pick<Reading, "source" | "value"> {
  const source = failureIn(result);
  if (source !== undefined) return { source };
  const { source: from, value } = result.payload as CacheAnswer<Levels>;
  return { source: from, value };
}

/** Whether a request reads the movements, which is how a computation begins. */
function isComputation(request: GateRequest): boolean {
  return request.operation === "Query" && names(request, movementsPartition(warehouse));
}

/** Whether a request stores the levels: nothing else that is written under their key names a product. */
function isStoring(request: GateRequest): boolean {
  const [{ product } = { product: "" }] = movementsBefore.cold ?? [];
  return (
    request.operation === "UpdateItem" &&
    names(request, cacheKeyPrefix + warehouse) &&
    JSON.stringify(request.body).includes(product)
  );
}

function names({ body }: GateRequest, value: string): boolean {
  return JSON.stringify(body).includes(JSON.stringify(value));
}

/** What the movements of some rounds add up to. */
function levelsAfter(rounds: readonly Round[]): Levels {
  const levels: Record<string, number> = {};
  for (const { product, quantity } of rounds.flatMap((round) => movementsBefore[round] ?? []))
    levels[product] = (levels[product] ?? 0) + quantity;
  return levels;
}

/** As people read it. */
function described(levels: Levels): string {
  return Object.entries(levels)
    .map(([product, quantity]) => `${quantity} ${product}s`)
    .join(", ");
}
