import type { LeaseClient } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";

/** What administrators can do with a client. */
export function adminOf(client: LeaseClient): LeaseAdmin {
  return new LeaseAdmin(client);
}
