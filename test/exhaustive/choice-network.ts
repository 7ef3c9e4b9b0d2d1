import type { CallOptions } from "@leasehold/client";
import type { Host } from "../worlds/host.ts";
import { Network, repeated, type Surroundings } from "../worlds/network.ts";
import { longestLagMs } from "../worlds/table.ts";
import type { ChoiceWorld, Fate, Message } from "./choice-world.ts";
import { digest } from "./digest.ts";

/** Another copy is sent when no answer has come for so long: for some SDK settings at once, for others after seconds. */
const attemptTimeoutMs = 1_000;
const attempts = 2;

/** One host's connection to the table, on which every request waits until its fate is chosen. */
export class ChoiceNetwork extends Network {
  readonly #world: ChoiceWorld;
  #requests = 0;
  #lags = false;

  constructor(host: Host, around: Surroundings, world: ChoiceWorld) {
    super(host, around);
    this.#world = world;
  }

  protected override call<Answer extends object>(
    options: CallOptions,
    serve: () => Answer,
    kind: Message["kind"] = "request",
  ): Promise<Answer> {
    this.#requests += 1;
    const request = this.#requests;
    return new Promise((resolve, reject) => {
      const { signal, isCurrent, timed } = options;
      const fail = (): void => reject(this.error("LEASE_NO_ANSWER", "the network did not deliver"));
      if (signal.aborted) {
        fail();
        return;
      }
      signal.addEventListener("abort", fail, { once: true });

      let copies = 0;
      const attempt = (number: number): void => {
        if (signal.aborted) return;
        if (number > attempts || !isCurrent()) {
          fail();
          return;
        }
        copies = number;
        const answered = timed?.();
        const retry = this.host.schedule(() => attempt(number + 1), attemptTimeoutMs);
        const what = `${this.host.name} ${kind} ${request}${number > 1 ? " again" : ""}`;
        const accept = (answer: Answer, time: ReturnType<typeof this.time>): void => {
          retry();
          answered?.(time);
          // Of whichever copy it is the answer: another may be under way.
          resolve(repeated(answer, copies > 1));
        };
        const refuse = (error: unknown, why: string): void =>
          this.host.deliver(() => {
            retry();
            reject(error);
          }, `${what} ${why}`);
        const arrive = (fate: Fate): void => {
          if (fate === "conflict") {
            refuse(this.error("LEASE_CONFLICT", "it met another transaction"), "met another");
            return;
          }
          if (fate === "throttled") {
            refuse(this.error("LEASE_THROTTLED", "the table has no capacity left"), "throttled");
            return;
          }
          this.#lags = fate === "read lags";
          const time = fate === "Date replaced" ? this.replacedTime() : this.time();
          let answer: Answer;
          try {
            answer = serve();
          } catch (error) {
            // An expression that the service does not take.
            refuse(error, "refused");
            return;
          }
          if (fate === "answer lost") return;
          const answers = `${what} answered ${digest(JSON.stringify([answer, time]))}`;
          const deliver = (): void => this.host.deliver(() => accept(answer, time), answers);
          const { host } = this;
          if (fate === "answer late")
            this.#world.sendLate({ what: `${answers} late`, host, kind: "answer", arrive: deliver });
          else deliver();
          if (fate === "sent twice")
            this.#world.sendLate({ what: `${what} copy`, host, kind: "copy", arrive: () => void serve() });
        };
        this.#world.send({ what, host: this.host, kind, arrive });
      };
      attempt(1);
    });
  }

  protected override transaction<Answer extends object>(
    options: CallOptions,
    serve: () => Answer,
  ): Promise<Answer> {
    return this.call(options, serve, "transaction");
  }

  protected override read<Answer extends object>(
    options: CallOptions,
    serve: () => Answer,
    isConsistent: boolean,
  ): Promise<Answer> {
    return this.call(options, serve, isConsistent ? "request" : "read");
  }

  protected override lagMs(isConsistent: boolean): number {
    return this.#lags && !isConsistent ? longestLagMs : 0;
  }
}
