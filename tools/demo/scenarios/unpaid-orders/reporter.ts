import type { LeaseEvent } from "@leasehold/client";
import type { Instance } from "../../instances.ts";
import type { Kind } from "../../marks.ts";
import type { Screen } from "../../screen.ts";
import type { Answer, Holding } from "./answers.ts";
import { deliveriesAtOnce, type Mishap, plan } from "./plan.ts";
import type { Casualty, Delivery, Recording } from "./recording.ts";

/** What is said in advance of a tick's mishap. */
const announcements: Record<Mishap, string> = {
  deliveredTwice: "; it will be delivered twice",
  killed: "; the running instance will be killed",
  frozen: "; the running instance will be frozen",
  woken: "; the frozen instance will wake",
};

/** Puts what happens into words. */
export class Reporter {
  readonly #screen: Screen;
  readonly #recording: Recording;
  #closed = 0;

  /** The recording is read where something depends on what happened before. */
  constructor(screen: Screen, recording: Recording) {
    this.#screen = screen;
    this.#recording = recording;
  }

  /** A tick is delivered. */
  fired(tick: number, orders: number, mishap: Mishap | undefined): void {
    this.#tellProgress(tick - 1, `tick ${tick} of ${plan.length}`);
    const announcement = mishap === undefined ? "" : announcements[mishap];
    const text = `${deliveriesAtOnce} times at once: ${orders} more orders overdue${announcement}`;
    this.#say("fired", undefined, tick, text);
  }

  /** A tick is delivered for the second time. */
  firedAgain(tick: number): void {
    this.#say("fired", undefined, tick, "the same trigger again, now that the run is over");
  }

  /** A lock was taken over. */
  takeover(tick: number, at: number, { owner, from, reason }: LeaseEvent & { type: "takeover" }): void {
    const since = ((at - from.expiresAt) / 1000).toFixed(2);
    const how = reason === "observation" ? "unchanged for a whole lease" : "by the service's clock";
    const text = `from ${from.owner}, whose lease had ended ${since} s ago (${how})`;
    this.#say("takeover", owner, tick, text);
  }

  /** A run was killed or frozen. */
  casualty(kind: Casualty["kind"], instance: string, holding: Holding): void {
    const { tick, closed, orderId, expiresAt } = holding;
    // A frozen one still comes to report what it closed.
    if (kind === "killed") this.#closed += closed;
    const until = this.#screen.time(expiresAt);
    const text =
      kind === "killed"
        ? `SIGKILL after ${closed} orders, with more to do; its lease stands until ${until}`
        : `SIGSTOP after ${closed} orders, its lease checked (until ${until}), its write of ${orderId} on the way`;
    this.#say(kind, instance, tick, text);
  }

  /** Lambda has started an instance, for all others are busy or gone. */
  started({ name, pid }: Instance): void {
    this.#screen.event("orders", "started", name, `instance ${name} (process ${pid})`);
  }

  /** A frozen instance goes on. */
  woken(instance: string, { tick, orderId }: Holding, sleptMs: number): void {
    const slept = (sleptMs / 1000).toFixed(1);
    const text = `SIGCONT after ${slept} s: its write of ${orderId}, which is still open, arrives now`;
    this.#say("woken", instance, tick, text);
  }

  /** An instance has answered a trigger. */
  answer({ tick, instance }: Delivery, answer: Answer): void {
    const say = (kind: Kind, text: string): void => this.#say(kind, instance, tick, text);
    if ("closed" in answer) this.#closed += answer.closed;
    switch (answer.result) {
      case "ran":
        say(
          "ran",
          `closed ${answer.closed} orders in ${answer.tookMs} ms, fencing token ${answer.fencingToken}`,
        );
        break;
      case "skipped":
        say("skipped", this.#whySkipped(answer));
        break;
      case "doneBefore":
        say("skipped", "the tick has had its run");
        break;
      case "lost": {
        const { fencedOff, reason, closed } = answer;
        const end =
          fencedOff === undefined ? "stopped by itself" : `its write of ${fencedOff} was fenced off`;
        say("lost", `${end} (lease ${reason}); its ${closed} orders from before stay closed`);
        break;
      }
      case "failed":
        say("failed", answer.problem);
        break;
      case "died":
        if (!this.#wasKilled(tick, instance)) say("failed", "its process ended, and nobody meant it to");
        break;
    }
  }

  /** Every tick has been played. */
  over(): void {
    this.#tellProgress(plan.length, "every tick has had its run");
  }

  #tellProgress(ticks: number, text: string): void {
    this.#screen.progress("orders", ticks, plan.length, `${text}; ${this.#closed} orders closed`);
  }

  #say(kind: Kind, who: string | undefined, tick: number, text: string): void {
    this.#screen.event("orders", kind, who, `${`tick ${tick}:`.padEnd(8)} ${text}`);
  }

  #wasKilled(tick: number, instance: string): boolean {
    return this.#recording.casualties.some((run) => run.tick === tick && run.instance === instance);
  }

  #whySkipped({ holder, expiresAt }: Answer & { result: "skipped" }): string {
    if (holder === undefined || expiresAt === undefined) return "the lock was let go at this very moment";
    return `held by ${holder} until ${this.#screen.time(expiresAt)}`;
  }
}
