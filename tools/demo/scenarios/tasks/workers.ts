import type { LeaseEvent } from "@leasehold/client";
import type { InvokeResult, LocalAppEvent } from "@leasehold/local";
import type { AddReport } from "../../../../functions/claim-tasks/handler.ts";
import { taskSetKey } from "../../../../functions/claim-tasks/schema.ts";
import type { WorkReport } from "../../../../functions/claim-tasks/worker.ts";
import { NotStaged } from "../../endings.ts";
import { failureIn } from "../../failure-in.ts";
import { type Instance, Instances, type InstancesListener } from "../../instances.ts";
import { endOfLease, type LoggedLeaseEvent } from "../../lease-log.ts";
import type { Stage } from "../../scenario.ts";
import type { Screen } from "../../screen.ts";
import type { Shift } from "./evidence.ts";
import { set, tasksToAdd, workersAtOnce } from "./plan.ts";

/** Calls the worker function, and writes down what its processes say. */
export class Workers implements InstancesListener {
  readonly shifts: Shift[] = [];
  readonly log: LoggedLeaseEvent[] = [];
  readonly instances: Instances;
  readonly #screen: Screen;
  readonly #ended = new Set<string>();

  constructor({ app, screen }: Stage) {
    this.#screen = screen;
    const options = { functionId: "Tasks/Worker", nameOf: (index: number) => `W${index + 1}` };
    this.instances = new Instances(app, options, this);
  }

  hear(event: LocalAppEvent): void {
    this.instances.hear(event);
  }

  onLeaseEvent({ name: instance }: Instance, _: string, event: LeaseEvent, at: number): void {
    if (!("key" in event) || event.key !== taskSetKey(set)) return;
    this.log.push({ instance, at, event });
    if (event.type === "acquired") this.#ended.delete(event.sortKey);
    if (event.type === "released" && event.confirmed) this.#ended.add(event.sortKey);
    this.tellProgress(`${workersAtOnce} workers share them`);
    if (event.type !== "takeover") return;
    const since = ((at - event.from.expiresAt) / 1000).toFixed(2);
    const id = event.sortKey.split("#").at(-1);
    const text = `${id} from ${event.from.owner}, whose claim had ended ${since} s ago`;
    this.#screen.event("tasks", "takeover", instance, text);
  }

  /** Shows how many tasks are done, and a word on it. */
  tellProgress(text: string, done: number = this.#ended.size): void {
    const total = tasksToAdd().length;
    this.#screen.progress("tasks", done, total, `${done} of ${total} are done; ${text}`);
  }

  /** Adds the tasks. Resolves to how many were added, and rejects with NotStaged if that did not end in its time. */
  async add(): Promise<number> {
    const add = tasksToAdd();
    const result = await this.instances.deliver({ set, add }).result;
    const { payload, functionError } = result;
    if (functionError !== undefined) {
      const Kind = failureIn(result) === "timedOut" ? NotStaged : Error;
      throw new Kind(`no tasks were added: ${JSON.stringify(payload)}`);
    }
    const { added } = payload as AddReport;
    return added;
  }

  /** Has a worker do what can be done. Resolves at its end, however it ends. */
  async work(): Promise<Shift> {
    const { requestId, result } = this.instances.deliver({ set });
    const outcome = await result;
    const shift = {
      worker: this.instances.of(requestId)?.name ?? "?",
      report: failureIn(outcome) ?? (outcome.payload as WorkReport),
    };
    this.shifts.push(shift);
    this.#tell(shift, outcome);
    return shift;
  }

  /** When the last claim of a worker ends, in epoch milliseconds. */
  claimEndsAt(worker: string): number {
    return endOfLease(this.log.filter(({ instance }) => instance === worker));
  }

  #tell({ worker, report }: Shift, { payload }: InvokeResult): void {
    if (report === "died") return;
    if (typeof report === "string") {
      this.#screen.event("tasks", "failed", worker, JSON.stringify(payload));
      return;
    }
    const { succeeded, failed, parked, putBack, lost } = report;
    const counts = { succeeded, "put back after an error": putBack, "failed for good": failed, parked, lost };
    const text = Object.entries(counts).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]));
    this.#screen.event("tasks", "ran", worker, text.length === 0 ? "found nothing to do" : text.join(", "));
  }
}
