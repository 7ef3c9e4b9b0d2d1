import type { LeaseEvent } from "@leasehold/client";
import type { InvokeResult, LocalAppEvent } from "@leasehold/local";
import type { CacheAnswer } from "../../../../functions/resource-cache/cache.ts";
import { cacheKeyPrefix } from "../../../../functions/resource-cache/schema.ts";
import type { StockLevels } from "../../../../functions/resource-cache/stock-levels.ts";
import { failureIn } from "../../failure-in.ts";
import type { GateRequest } from "../../gate.ts";
import { type Instance, Instances, type InstancesListener } from "../../instances.ts";
import { endOfLease, type LoggedLeaseEvent } from "../../lease-log.ts";
import type { System } from "../../marks.ts";
import type { Stage } from "../../scenario.ts";
import type { Screen } from "../../screen.ts";
import type { Reading, Round } from "./evidence.ts";
import { callersAtOnce, described, warehouse } from "./plan.ts";

const system: System = "stock";
/** Longer than any lease here: every caller gets an answer. */
const waitMs = 14_000;

const questions: Readonly<Record<Round, string>> = {
  cold: "12 times at once: nobody has computed the levels yet",
  killed: "4 times at once: the value is too old, and whoever computes it will be killed",
  bereaved: "4 times at once: the dead one's lease stands",
  recovered: "once: the dead one's lease has ended",
  afterwards: "4 times at once: the dead one's write has come too late",
};

/** Asks for the levels on many instances at once, and writes down what they say. */
export class Callers implements InstancesListener {
  readonly readings: Reading[] = [];
  readonly log: LoggedLeaseEvent[] = [];
  readonly #screen: Screen;
  readonly instances: Instances;

  constructor({ app, screen }: Stage) {
    this.#screen = screen;
    const options = { functionId: "StockLevels/Levels", nameOf: (index: number) => `S${index + 1}` };
    this.instances = new Instances(app, options, this);
  }

  hear(event: LocalAppEvent): void {
    this.instances.hear(event);
  }

  onLeaseEvent({ name: instance }: Instance, _: string, event: LeaseEvent, at: number): void {
    if (!("key" in event) || event.key !== cacheKeyPrefix + warehouse) return;
    this.log.push({ instance, at, event });
    if (event.type !== "takeover") return;
    const since = ((at - event.from.expiresAt) / 1000).toFixed(2);
    this.#say("takeover", instance, `from ${event.from.owner}, whose lease had ended ${since} s ago`);
  }

  /** How many callers have found another one computing. */
  get waiting(): number {
    return this.log.filter(({ event }) => event.type === "contended").length;
  }

  /** Has as many instances started, by calls that do not touch one another. */
  async start(amount: number): Promise<void> {
    const calls = Array.from({ length: amount }, (_, index) =>
      this.instances.deliver({ warehouse: `site-${index + 1}` }),
    );
    await Promise.all(calls.map(({ result }) => result));
    const names = new Set(calls.map(({ requestId }) => this.instances.of(requestId)?.name));
    const text = `${names.size} instances, by calls for a warehouse each: nobody waits for anybody`;
    this.#say("started", undefined, text);
  }

  /** Asks as often as the round wants, at once. Resolves when all have answered. */
  async ask(round: Round): Promise<readonly Reading[]> {
    const amount = callersAtOnce[round];
    this.#say("asked", undefined, questions[round]);
    const readings = await Promise.all(Array.from({ length: amount }, () => this.#ask(round)));
    this.readings.push(...readings);
    this.#tell(readings);
    return readings;
  }

  /** The lease under which a result is stored, which carries its fencing token. */
  leaseIn({ body }: GateRequest): { readonly instance: Instance; readonly fencingToken: number } | undefined {
    const text = JSON.stringify(body);
    for (const { event } of this.log) {
      if (event.type !== "acquired" || !text.includes(`"${event.fencingToken}"`)) continue;
      const instance = this.instances.named(event.owner);
      if (instance !== undefined) return { instance, fencingToken: event.fencingToken };
    }
    return undefined;
  }

  /** Epoch milliseconds. */
  leaseEndsAt(fencingToken: number): number {
    return endOfLease(
      this.log.filter(({ event }) => "fencingToken" in event && event.fencingToken === fencingToken),
    );
  }

  /** SIGKILL. */
  kill(instance: Instance): Promise<void> {
    return this.instances.kill(instance);
  }

  async #ask(round: Round): Promise<Reading> {
    const { requestId, result } = this.instances.deliver({ warehouse, waitMs, retry: "fullJitter" });
    const outcome = await result;
    return { round, instance: this.instances.of(requestId)?.name ?? "?", ...answerOf(outcome) };
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

  #say(kind: Parameters<Screen["event"]>[1], who: string | undefined, text: string): void {
    this.#screen.event(system, kind, who, text);
  }
}

function answerOf(result: InvokeResult): Pick<Reading, "source" | "value"> {
  const source = failureIn(result);
  if (source !== undefined) return { source };
  const { source: from, value } = result.payload as CacheAnswer<StockLevels>;
  return { source: from, value };
}
