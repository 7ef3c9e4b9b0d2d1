import { randomUUID } from "node:crypto";
import type { LeaseEvent } from "@leasehold/client";
import type { InvokeResult, LocalApp, LocalAppEvent } from "@leasehold/local";

/** An execution environment of a function: a process of its own. */
export interface Instance {
  /** Short, for people. */
  readonly name: string;
  readonly environmentId: string;
  readonly pid: number | undefined;
}

/** Hears what becomes of instances. */
export interface InstancesListener {
  onStarted?(instance: Instance): void;
  /** The owners in the event are the names of instances. */
  onLeaseEvent(instance: Instance, requestId: string, event: LeaseEvent, at: number): void;
}

/** Which function's instances, and what they are called. */
export interface InstancesOptions {
  /** The end of its construct path. */
  readonly functionId: string;
  /** Counts from 0. */
  readonly nameOf: (index: number) => string;
}

/** The line that functions write about an event of a lease. */
interface LeaseLine {
  readonly time: string;
  readonly lease: LeaseEvent;
}

/** A function's execution environments, which Lambda starts as it needs them, with names that people can tell apart. */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #listener: InstancesListener;
  readonly #byEnvironment = new Map<string, Instance>();
  readonly #byRequest = new Map<string, Instance>();
  /** Labels of leases' owners: a process has one for all of its leases, or one for each invocation. */
  readonly #byOwner = new Map<string, Instance>();
  readonly #app: LocalApp;
  readonly #functionName: string | undefined;

  constructor(app: LocalApp, options: InstancesOptions, listener: InstancesListener) {
    this.#app = app;
    this.#options = options;
    this.#listener = listener;
    this.#functionName = app.spec.functions.find(({ path }) => path?.endsWith(options.functionId))?.name;
  }

  /** Takes what happens in the app. */
  hear(event: LocalAppEvent): void {
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
      this.#listener.onLeaseEvent(instance, requestId, this.#withNames(said.lease), Date.parse(said.time));
    }
  }

  /** Invokes the function under a request id of ours. */
  deliver(payload: unknown): { readonly requestId: string; readonly result: Promise<InvokeResult> } {
    const requestId = randomUUID();
    return { requestId, result: this.#app.invoke(this.#options.functionId, payload, { requestId }) };
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

  /** SIGKILL. Resolves when the process is gone. */
  kill({ environmentId }: Instance): Promise<void> {
    return this.#app.kill(environmentId);
  }

  /** SIGSTOP: the process gets no more time, and does not know it. */
  freeze({ environmentId }: Instance): void {
    this.#app.freeze(environmentId);
  }

  /** SIGCONT. */
  thaw({ environmentId }: Instance): void {
    this.#app.thaw(environmentId);
  }

  #instance(environmentId: string): Instance {
    const known = this.#byEnvironment.get(environmentId);
    if (known !== undefined) return known;
    const { functionId, nameOf } = this.#options;
    const name = nameOf(this.#byEnvironment.size);
    const { pid } = this.#app.environments(functionId).find(({ id }) => id === environmentId) ?? {};
    const instance = { name, environmentId, pid };
    this.#byEnvironment.set(environmentId, instance);
    this.#listener.onStarted?.(instance);
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
