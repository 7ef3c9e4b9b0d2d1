import type { LoggedEvent } from "@leasehold/client/log";

/** What the samples are about. */
export const sampleSubject = { key: "import", sortKey: "lease", owner: "me", fencingToken: 7 };
export const sampleTime: number = Date.UTC(2026, 0, 1);
export const sampleError: Error = Object.assign(new TypeError("no such method"), { code: "ERR_X" });

/** One event of each type. */
export const sampleEvents: {
  readonly [Type in LoggedEvent["type"]]: Extract<LoggedEvent, { readonly type: Type }>;
} = {
  acquired: { type: "acquired", ...sampleSubject, waitedMs: 12, expiresAt: sampleTime },
  takeover: {
    type: "takeover",
    ...sampleSubject,
    reason: "serviceClock",
    from: { owner: "dead", fencingToken: 6, expiresAt: sampleTime },
  },
  contended: {
    type: "contended",
    key: "import",
    sortKey: "permit/1",
    owner: "me",
    holder: "other",
    expiresAt: sampleTime,
    inCooldown: false,
  },
  renewed: { type: "renewed", ...sampleSubject, expiresAt: sampleTime },
  lost: { type: "lost", ...sampleSubject, reason: "taken", heldMs: 5_000 },
  released: { type: "released", ...sampleSubject, heldMs: 5_000, confirmed: true },
  completionFailed: { type: "completionFailed", ...sampleSubject, slot: "8:00", code: "LEASE_NO_ANSWER" },
  skew: { type: "skew", offsetMinMs: 9_000, offsetMaxMs: 10_000, clockSkewMs: 1_000 },
  timeUnknown: { type: "timeUnknown" },
  error: {
    type: "error",
    key: "import",
    sortKey: "lease",
    owner: "me",
    operation: "renew",
    error: sampleError,
  },
  shortLease: { type: "shortLease", key: "import", sortKey: "lease", owner: "me", leaseDurationMs: 30 },
  unreadable: {
    type: "unreadable",
    key: "import",
    sortKey: "lease",
    attribute: "token",
    message: "token is odd",
  },
  served: { type: "served", key: "import", source: "cache", waitedMs: 3 },
  computed: { type: "computed", key: "import", fencingToken: 7, attempt: 1, tookMs: 40 },
  cacheFailed: {
    type: "cacheFailed",
    key: "import",
    operation: "write",
    reason: "threw",
    error: sampleError,
  },
  refreshFailed: { type: "refreshFailed", key: "import", error: sampleError },
};
