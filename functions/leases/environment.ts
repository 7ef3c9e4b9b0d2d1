import { environmentNames } from "@leasehold/client/environment";
import { dynamodb } from "../support/dynamodb.ts";
import { optional } from "../support/environment.ts";
import { handingOnClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import type { LeaseService } from "./lease-service.ts";

/** The lease functions' service on the table and for the keys that the environment names. */
export const leaseService: () => LeaseService = once(() => {
  const forgetful = () => handingOnClient(dynamodb());
  return { leases: forgetful(), forgetful, keyPrefix: optional(environmentNames.keyPrefix) };
});
