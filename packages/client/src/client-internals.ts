import { isBranded } from "./errors/brand.ts";
import { InvalidOptionsError } from "./errors/errors.ts";
import type { ValueFormat } from "./fencing.ts";
import type { Lease } from "./lease.ts";
import type { ClientTimes } from "./options/check-options.ts";
import { readable } from "./options/check-values.ts";
import type { WaitOptions } from "./options/options.ts";
import type { Acquirer } from "./protocol/acquirer.ts";
import type { ProtocolContext } from "./protocol/context.ts";

/** The parts that this package's other primitives are built from. */
export interface ClientInternals {
  readonly context: ProtocolContext;
  readonly format: ValueFormat;
  /**
   * The client's owner, for calls that name none. Read it anew for each call: a clone of this process has another
   * owner.
   */
  readonly owner: string;
  readonly times: ClientTimes;
  readonly acquirer: Acquirer;
  /** As `client.acquire`, for a lease at another sort key under the key. */
  acquireAt(key: string, sortKey: string, options: WaitOptions): Promise<Lease>;
}

/** Kept beside the client and not in it, so that users do not see them. */
const known = new WeakMap<object, ClientInternals>();

/** Shows a client's parts to the rest of the package. */
export function showInternals(client: object, parts: ClientInternals): void {
  known.set(client, parts);
}

/** The parts of two copies may be of two versions, and need not fit together. */
const ofAnotherCopy = {
  finding: "is a LeaseClient of another copy of @leasehold/client",
  advice: "install one version (npm ls @leasehold/client), and bundle either all that imports it or nothing",
};

/** Returns a client's parts. Throws InvalidOptionsError for every value that is not a LeaseClient of this package. */
export function internalsOf(client: unknown): ClientInternals {
  const isObject = typeof client === "object" && client !== null;
  const parts = isObject ? known.get(client) : undefined;
  if (parts !== undefined) return parts;
  // Not by the class's name, which bundlers shorten.
  const isOfAnotherCopy = readable("client", client, () => isBranded(client, "LeaseClient"));
  throw new InvalidOptionsError("client", client, "a LeaseClient", isOfAnotherCopy ? ofAnotherCopy : {});
}
