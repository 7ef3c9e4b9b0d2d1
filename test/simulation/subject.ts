import * as client from "@leasehold/client";

/** The code under simulation: the client package, or a copy of it with a planted mistake. */
export type Subject = Pick<typeof client, "LeaseClient" | "LeaseServiceError">;

/** The client as it is. */
export const realSubject: Subject = client;
