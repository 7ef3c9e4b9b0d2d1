import type { ValueFormat } from "./fencing.ts";
import type { Lease } from "./lease.ts";
import type { AcquireOptions } from "./options.ts";
import type { ProtocolContext } from "./protocol/context.ts";

/** Under this name a client shows what the other primitives of this package are made of. */
export const internals: unique symbol = Symbol("leasehold internals");

/** What the other primitives of this package are made of. */
export interface ClientInternals {
  readonly context: ProtocolContext;
  readonly format: ValueFormat;
  /** The client's owner, for options that name none. */
  readonly owner: string;
  readonly leaseDurationMs: number;
  /** As `client.acquire`, for a lease at another place under the key. */
  acquireAt(key: string, place: string, options: AcquireOptions): Promise<Lease>;
}
