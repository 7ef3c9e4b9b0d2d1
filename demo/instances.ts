import { randomUUID } from "node:crypto";
import type { LeaseEvent } from "@leasehold/client";
import type { InvokeResult, LocalApp, LocalAppEvent } from "@leasehold/local";

/** The function that runs as many instances at once, by the end of its construct path. */
const functionId = "UnpaidOrders/Close";

/** An execution environment of the function: a process of its own. */
export interface Instance {
  /** A letter, for people. */
  readonly name: string;
  readonly environmentId: string;
  readonly pid: number | undefined;
}

/** Hears what becomes of instances. */
export interface InstancesListener {
  onStarted(instance: Instance): void;
  onLeaseEvent(instance: Instance, requestId: string, event: LeaseEvent, at: number): void;
}

/** The line that functions write about an event of a lease. */
interface LeaseLine {
  readonly time: string;
  readonly lease: LeaseEvent;
}

/** The function's execution environments, which Lambda starts as it needs them, with names that people can tell apart. */
export class Instances {
  readonly #listener: InstancesListener;
  readonly #byEnvironment = new Map<string, Instance>();
  readonly #byRequest = new Map<string, Instance>();
  readonly #app: LocalApp;
  readonly #functionName: string | undefined;

  constructor(app: LocalApp, listener: InstancesListener) {
    this.#app = app;
    this.#listener = listener;
    this.#functionName = app.spec.functions.find(({ path }) => path?.endsWith(functionId))?.name;
  }

  /** Takes what happens in the app. */
  hear(event: LocalAppEvent): void {
    if (event.type === "environment" && event.environment.functionName === this.#functionName) {
      const { environmentId, requestId, type } = event.environment;
      if (type !== "invoked" || requestId === undefined) return;
      this.#byRequest.set(requestId, this.#instance(environmentId));
    }
    if (event.type === "log" && event.log.requestId !== undefined) {
      const instance = this.#byRequest.get(event.log.requestId);
      const said = instance && leaseLine(event.log.line);
      if (said) this.#listener.onLeaseEvent(instance, event.log.requestId, said.lease, Date.parse(said.time));
    }
  }

  /** Invokes the function under a request id of ours. */
  deliver(payload: unknown): { readonly requestId: string; readonly result: Promise<InvokeResult> } {
    const requestId = randomUUID();
    return { requestId, result: this.#app.invoke(functionId, payload, { requestId }) };
  }

  /** The instance that has, or had, an invocation. */
  of(requestId: string): Instance | undefined {
    return this.#byRequest.get(requestId);
  }

  /** The name of the instance behind an owner label, which contains the invocation's request id. */
  nameOf(owner: string): string {
    for (const [requestId, { name }] of this.#byRequest) if (owner.includes(requestId)) return name;
    return owner;
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
    const name = String.fromCharCode("A".charCodeAt(0) + this.#byEnvironment.size);
    const { pid } = this.#app.environments(functionId).find(({ id }) => id === environmentId) ?? {};
    const instance = { name, environmentId, pid };
    this.#byEnvironment.set(environmentId, instance);
    this.#listener.onStarted(instance);
    return instance;
  }
}

function leaseLine(line: string): LeaseLine | undefined {
  if (!line.startsWith("{") || !line.includes('"lease":')) return undefined;
  return JSON.parse(line) as LeaseLine;
}
