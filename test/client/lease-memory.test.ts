/** What a client remembers of leases stays bounded, and never forgets what is in use. */
import { describe, expect, it } from "vitest";
import type { Core } from "../../packages/client/src/core/core.ts";
import { LeaseMemory } from "../../packages/client/src/core/lease-memory.ts";
import { sharedLooks } from "../../packages/client/src/core/shared-looks.ts";

const client = {} as Core;

/** Remembers when each value was made: the how-many-th of all. */
function memory(isInUse?: (value: number) => boolean) {
  let made = 0;
  return new LeaseMemory(() => {
    made += 1;
    return made;
  }, isInUse);
}

describe("what is remembered of a lease", () => {
  it("is made once for each client, key and sort key", () => {
    const numbers = memory();
    const first = numbers.of(client, "k", "lease");
    expect(numbers.of(client, "k", "lease")).toBe(first);
    const others = [
      numbers.of({} as Core, "k", "lease"),
      numbers.of(client, "l", "lease"),
      numbers.of(client, "k", "semaphore"),
    ];
    expect(new Set([first, ...others]).size).toBe(4);
    expect(numbers.of(client, "k", "lease")).toBe(first);
  });

  it("is forgotten beyond a thousand leases, the one that was used longest ago first", () => {
    const numbers = memory();
    for (let lease = 1; lease <= 1_000; lease += 1) numbers.of(client, `k${lease}`, "lease");
    expect(numbers.of(client, "k1", "lease")).toBe(1);
    expect(numbers.of(client, "k1001", "lease")).toBe(1_001);
    expect(numbers.of(client, "k1", "lease")).toBe(1);
    expect(numbers.of(client, "k3", "lease")).toBe(3);
    expect(numbers.of(client, "k2", "lease")).toBe(1_002);
  });

  it("is kept while it is in use, and however many others are", () => {
    const inUse = new Set<number>([1]);
    const numbers = memory((value) => inUse.has(value));
    for (let lease = 1; lease <= 1_001; lease += 1) numbers.of(client, `k${lease}`, "lease");
    expect(numbers.of(client, "k1", "lease")).toBe(1);
    expect(numbers.of(client, "k2", "lease")).toBe(1_002);
    for (let value = 0; value <= 1_002; value += 1) inUse.add(value);
    expect(numbers.of(client, "new", "lease")).toBe(1_003);
    expect(numbers.of(client, "new", "lease")).toBe(1_003);
  });
});

describe("what the waiters for one lease share", () => {
  it("is kept while there is a waiter, however many other leases are waited for, and no longer", () => {
    const lookForOthers = (): void => {
      for (let index = 0; index < 1_001; index += 1) sharedLooks.of(client, `other ${index}`, "lease");
    };
    const looks = sharedLooks.of(client, "k", "lease");
    const leave = looks.join(() => undefined);
    lookForOthers();
    expect(sharedLooks.of(client, "k", "lease")).toBe(looks);
    leave();
    lookForOthers();
    expect(sharedLooks.of(client, "k", "lease")).not.toBe(looks);
  });
});
