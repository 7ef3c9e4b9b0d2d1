import type { Host } from "../worlds/host.ts";
import { type Copy, longestDateErrorMs, Network, type Surroundings } from "../worlds/network.ts";
import { longestLagMs } from "../worlds/table.ts";
import type { ChoiceWorld, Fate } from "./choice-world.ts";
import { digest } from "./digest.ts";

/** Another copy is sent when no answer has come for so long: for some SDK settings at once, for others after seconds. */
const attemptTimeoutMs = 1_000;

/** One host's connection to the table, on which every request waits until its fate is chosen. */
export class ChoiceNetwork extends Network {
  protected override readonly attempts: number = 2;
  readonly #world: ChoiceWorld;
  #lags = false;
  #wrongDates = 0;

  constructor(host: Host, around: Surroundings, world: ChoiceWorld) {
    super(host, around);
    this.#world = world;
  }

  protected override patienceMs(): number {
    return attemptTimeoutMs;
  }

  protected override transmit<Answer extends object>({
    kind,
    request,
    number,
    serve,
    accept,
    refuse,
  }: Copy<Answer>): void {
    const { host } = this;
    const what = `${host.name} ${kind} ${request}${number > 1 ? " again" : ""}`;
    const refused = (error: unknown, why: string): void =>
      host.deliver(() => refuse(error), `${what} ${why}`);
    const arrive = (fate: Fate): void => {
      if (fate === "conflict") {
        refused(this.error("LEASE_CONFLICT", "it met another transaction"), "met another");
        return;
      }
      if (fate === "throttled") {
        refused(this.error("LEASE_THROTTLED", "the table has no capacity left"), "throttled");
        return;
      }
      this.#lags = fate === "read lags";
      const time = fate === "Date replaced" ? this.#wrongTime() : this.time();
      let answer: Answer;
      try {
        answer = serve();
      } catch (error) {
        // An expression that the service does not take.
        refused(error, "refused");
        return;
      }
      if (fate === "answer lost") return;
      const answers = `${what} answered ${digest(JSON.stringify([answer, time]))}`;
      const deliver = (): void => host.deliver(() => accept(answer, time), answers);
      if (fate === "answer late")
        this.#world.sendLate({ what: `${answers} late`, host, kind: "answer", arrive: deliver });
      else deliver();
      if (fate === "sent twice")
        this.#world.sendLate({ what: `${what} copy`, host, kind: "copy", arrive: () => void serve() });
    };
    this.#world.send({ what, host, kind, arrive });
  }

  /** No two wrong Dates agree: against a proxy that always lies nothing helps. */
  #wrongTime(): ReturnType<Network["time"]> {
    this.#wrongDates += 1;
    return this.replacedTime(longestDateErrorMs / this.#wrongDates);
  }

  protected override lagMs(isConsistent: boolean): number {
    return this.#lags && !isConsistent ? longestLagMs : 0;
  }
}
