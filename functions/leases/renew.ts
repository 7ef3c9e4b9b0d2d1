import type { LeaseHandle } from "@leasehold/client";
import { type Answering, answering } from "../support/answers.ts";
import { leaseService, renewLease } from "./lease-service.ts";

/**
 * Prolongs a lease by its duration: `{ "lease": handle }` → the handle anew.
 *
 * Dies after the request: the lease is prolonged, and the old handle still renews and releases it.
 */
export const handler: Answering<LeaseHandle> = answering((event) => renewLease(leaseService(), event));
