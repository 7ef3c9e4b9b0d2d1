import * as client from "@leasehold/client";
import { LeaseError, LeaseLostError } from "@leasehold/client";
import * as fair from "@leasehold/client/fair";
import * as group from "@leasehold/client/group";
import * as leader from "@leasehold/client/leader";
import * as readWrite from "@leasehold/client/read-write";
import * as record from "@leasehold/client/record";
import * as semaphore from "@leasehold/client/semaphore";
import * as singleFlight from "@leasehold/client/single-flight";
import * as jobs from "@leasehold/jobs";
import { describe, expect, it } from "vitest";

type ErrorClass = new (...args: never[]) => Error;

const entries = {
  client,
  fair,
  group,
  jobs,
  leader,
  readWrite,
  record,
  semaphore,
  singleFlight,
};

/** Thrown by a caller's own work, to say that no attempt can succeed: the package never raises it. */
const thrownByCallers = ["FinalFailureError"];

/** Every class of errors that an entry of the package exports. */
const classes = new Map<string, ErrorClass>();
for (const exported of Object.values(entries)) {
  for (const [name, value] of Object.entries(exported)) {
    if (thrownByCallers.includes(name)) continue;
    if (typeof value === "function" && value.prototype instanceof Error)
      classes.set(name, value as ErrorClass);
  }
}

/** An error of each class, whatever its constructor wants; arguments that do not fit give an odd message and no more. */
function exampleOf(type: ErrorClass): Error {
  const held = { owner: "a", expiresAt: 0, inCooldown: false };
  const tries: unknown[][] = [
    ["LEASE_THROTTLED", "message"],
    [{ key: "k", sortKey: "lease" }, "token", "is missing", "a string"],
    [["k"], [], 0],
    [[{ key: "k", sortKey: "lease", expiresAt: 0, error: undefined }], 0],
    ["k", held, 0],
    ["k", "1", { attempts: 1, maxAttempts: 1, remark: undefined }],
    ["k", "taken", "more", "still more"],
    ["k", { name: "Error", message: "m" }, 0],
  ];
  const failures: unknown[] = [];
  for (const args of tries) {
    try {
      return Reflect.construct(type, args) as Error;
    } catch (error) {
      failures.push(error);
    }
  }
  throw new AggregateError(failures, `no example of ${type.name}`);
}

describe("the errors of the package", () => {
  it("are found", () => {
    expect([...classes.keys()]).toEqual(
      expect.arrayContaining([
        "LeaseError",
        "LeaseItemError",
        "LeaseAbortedError",
        "QueueFullError",
        "TaskLostError",
      ]),
    );
    expect(classes.size).toBeGreaterThan(15);
  });

  it.each([...classes])("%s is a LeaseError, and bears its own name", (name, type) => {
    expect(type === LeaseError || type.prototype instanceof LeaseError).toBe(true);
    expect(exampleOf(type).name).toBe(name);
  });

  it("have codes of their own, but for a class that refines another", () => {
    const byCode = new Map<string, ErrorClass>();
    // Those of the service, of the table and of the configuration take one of several codes as an argument.
    const withSeveral = ["LeaseError", "LeaseServiceError", "LeaseTableError", "LeaseConfigurationError"];
    for (const [name, type] of classes) {
      if (withSeveral.includes(name)) continue;
      const { code } = exampleOf(type) as LeaseError;
      expect(code).toMatch(/^[A-Z]+(_[A-Z]+)+$/);
      const other = byCode.get(code);
      const isRefined =
        other === undefined || type.prototype instanceof other || other.prototype instanceof type;
      expect(isRefined, `${code} of ${name} and ${other?.name}`).toBe(true);
      byCode.set(code, type);
    }
  });

  it("begin their stack with their name, for logs that print nothing else", () => {
    expect(new LeaseLostError("k", "taken").stack).toMatch(/^LeaseLostError: the lease of "k" is lost/);
  });

  it("have what their class declares as properties of their own, and a cause only where there is one", () => {
    const cause = new Error("why");
    expect(Object.keys(new LeaseLostError("k", "taken")).sort()).toEqual([
      "code",
      "docs",
      "key",
      "mayHaveLanded",
      "reason",
    ]);
    expect("cause" in new LeaseLostError("k", "taken")).toBe(false);
    const failed = new LeaseLostError("k", "failed", undefined, { cause });
    expect(failed.cause).toBe(cause);
    expect(Object.keys(failed)).not.toContain("cause");
  });
});
