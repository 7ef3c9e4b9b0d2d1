import { randomUUID } from "node:crypto";
import type { LeaseEvent } from "@leasehold/client";
import type { InvokeResult, LocalAppEvent } from "@leasehold/local";
import { type Grant, grantsIn, type LoggedLeaseEvent } from "./leases.ts";
import type { Stage } from "./stage.ts";

/** An execution environment of a function: a process of its own. */
export interface Instance {
  /** Short, for people. */
  readonly name: string;
  readonly environmentId: string;
  readonly pid: number | undefined;
}

/** Which function's instances, what they are called, and who hears what becomes of them. */
interface InstancesOptions {
  /** The end of its construct path. */
  readonly functionId: string;
  /** Counts from 0. */
  readonly nameOf: (index: number) => string;
  /** The key whose leases they tell of. */
  readonly key: string;
  readonly onStarted?: (instance: Instance) => void;
  /** Called for each entry of the log, with the invocation that it is of. */
  readonly onLeaseEvent: (entry: LoggedLeaseEvent, requestId: string) => void;
}

/** The line that functions write about an event of a lease. */
interface LeaseLine {
  readonly time: string;
  readonly lease: LeaseEvent;
}

/** A function's execution environments, which Lambda starts as it needs them, with names that people can tell apart. */
export class Instances {
  /** What they have told of the key's leases. */
  readonly log: LoggedLeaseEvent[] = [];
  readonly #stage: Stage;
  readonly #options: InstancesOptions;
  readonly #functionName: string | undefined;
  readonly #byEnvironment = new Map<string, Instance>();
  readonly #byRequest = new Map<string, Instance>();
  /** Labels of leases' owners: a process has one for all of its leases, or one for each invocation. */
  readonly #byOwner = new Map<string, Instance>();

  constructor(stage: Stage, options: InstancesOptions) {
    this.#stage = stage;
    this.#options = options;
    this.#functionName = stage.app.spec.functions.find(({ path }) =>
      path?.endsWith(options.functionId),
    )?.name;
    stage.hear((event) => this.#hear(event));
  }

  /** Invokes the function under a request id of ours. */
  deliver(payload: unknown): { readonly requestId: string; readonly result: Promise<InvokeResult> } {
    const requestId = randomUUID();
    return { requestId, result: this.#stage.app.invoke(this.#options.functionId, payload, { requestId }) };
  }

  /** The instance that has, or had, an invocation. */
  of(requestId: string): Instance | undefined {
    return this.#byRequest.get(requestId);
  }

  /** The instance that a request names as a lease's owner. */
  namedIn(request: string): Instance | undefined {
    for (const labels of [this.#byOwner, this.#byRequest])
      for (const [label, instance] of labels) if (request.includes(label)) return instance;
    return undefined;
  }

  /** The instance of a name. */
  named(name: string): Instance | undefined {
    return [...this.#byEnvironment.values()].find((instance) => instance.name === name);
  }

  /** The name of the instance behind an owner label. */
  nameOf(owner: string): string {
    return this.namedIn(owner)?.name ?? owner;
  }

  /**
   * Reads the grants under the key as the table made them, with the names of instances as owners.
   *
   * Waits until the table's stream shows every lease that an instance has told of: a stream may come a moment later.
   */
  async grants(): Promise<Grant[]> {
    const { tempo, history } = this.#stage;
    const told = this.log.flatMap(({ event }) => (event.type === "acquired" ? [event] : []));
    const grants = await tempo.until("the table's stream to show every lease", async () => {
      const found = grantsIn(await history(), this.#options.key);
      const shown = new Set(found.map(({ sortKey, fencingToken }) => `${fencingToken} ${sortKey}`));
      return told.every(({ sortKey, fencingToken }) => shown.has(`${fencingToken} ${sortKey}`))
        ? found
        : undefined;
    });
    return grants.map((grant) => ({
      ...grant,
      owner: this.nameOf(grant.owner),
      from: grant.from && { ...grant.from, owner: this.nameOf(grant.from.owner) },
    }));
  }

  #hear(event: LocalAppEvent): void {
    if (event.type === "environment" && event.environment.functionName === this.#functionName) {
      const { environmentId, requestId, type } = event.environment;
      if (type !== "invoked" || requestId === undefined) return;
      this.#byRequest.set(requestId, this.#instance(environmentId));
    }
    if (event.type === "log" && event.log.requestId !== undefined) {
      const { requestId, line } = event.log;
      const instance = this.#byRequest.get(requestId);
      const said = instance && leaseLine(line);
      if (!said) return;
      if ("owner" in said.lease) this.#byOwner.set(said.lease.owner, instance);
      const told = this.#withNames(said.lease);
      if (!("key" in told) || told.key !== this.#options.key) return;
      const entry = { instance: instance.name, at: Date.parse(said.time), event: told };
      this.log.push(entry);
      this.#options.onLeaseEvent(entry, requestId);
    }
  }

  #instance(environmentId: string): Instance {
    const known = this.#byEnvironment.get(environmentId);
    if (known !== undefined) return known;
    const { functionId, nameOf } = this.#options;
    const name = nameOf(this.#byEnvironment.size);
    const { pid } = this.#stage.app.environments(functionId).find(({ id }) => id === environmentId) ?? {};
    const instance = { name, environmentId, pid };
    this.#byEnvironment.set(environmentId, instance);
    this.#options.onStarted?.(instance);
    return instance;
  }

  /** Owners are labels with a request id in them; for people they become the names of instances. */
  #withNames(event: LeaseEvent): LeaseEvent {
    if (!("owner" in event)) return event;
    const owner = this.nameOf(event.owner);
    if (event.type === "contended") return { ...event, owner, holder: this.nameOf(event.holder) };
    if (event.type === "takeover")
      return { ...event, owner, from: { ...event.from, owner: this.nameOf(event.from.owner) } };
    return { ...event, owner };
  }
}

function leaseLine(line: string): LeaseLine | undefined {
  if (!line.startsWith("{") || !line.includes('"lease":')) return undefined;
  return JSON.parse(line) as LeaseLine;
}

/**
 * How an invocation failed; undefined where it did not. One that failed for want of time, its own or that of the gate of
 * this process, says something about this machine and nothing about the app.
 */
export function failureIn({
  payload,
  functionError,
}: InvokeResult): "died" | "timedOut" | "failed" | undefined {
  if (functionError === undefined) return undefined;
  const { errorType, errorMessage } = payload as {
    readonly errorType: string;
    readonly errorMessage: string;
  };
  if (errorType === "Runtime.ExitError") return "died";
  // A lease that ended under a run that nobody has stopped was renewed too late.
  const isLate =
    ["Sandbox.Timedout", "TimeoutError"].includes(errorType) ||
    /no answer|is lost \(expired\)/.test(errorMessage);
  return isLate ? "timedOut" : "failed";
}
