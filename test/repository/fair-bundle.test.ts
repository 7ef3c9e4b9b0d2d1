import { expect, it } from "vitest";
import { bundled } from "../support/bundled.ts";

/** The files of the client that a program takes along. */
async function filesIn(program: string): Promise<readonly string[]> {
  return [...(await bundled(program, { external: ["@aws-sdk/*"] })).bytesOf.keys()];
}

const isOfFairness = (file: string): boolean => file.includes("packages/client/src/primitives/fair/");

it.each([
  'export { LeaseClient } from "@leasehold/client";',
  'export { Semaphore } from "@leasehold/client/semaphore";',
  'export { ReadWriteLock } from "@leasehold/client/read-write";',
  'export { leased } from "@leasehold/middy";',
  'export { leaseLock } from "@leasehold/middy";',
])("a bundle holds nothing of the order of arrival unless it asks for it: %s", async (program) => {
  expect((await filesIn(program)).filter(isOfFairness)).toEqual([]);
});

it.each([
  'export { LeaseClient } from "@leasehold/client";',
  'export { leaseLock } from "@leasehold/middy";',
])(
  "a bundle without a semaphore, a read-write lock and administration holds nothing of seats: %s",
  async (program) => {
    const files = await filesIn(program);
    expect(files).toContainEqual(expect.stringContaining("packages/client/src/core/"));
    expect(files.filter((file) => file.includes("packages/client/src/primitives/seats/"))).toEqual([]);
  },
);

it("a bundle holds the order of arrival where it asks for it", async () => {
  const files = await filesIn('export { fair } from "@leasehold/client/fair";');
  expect(files.some(isOfFairness)).toBe(true);
});
