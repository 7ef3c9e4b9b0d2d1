import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { bundled } from "../support/bundled.ts";

const run = promisify(execFile);

const client = `
  import { LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
  import { fair } from "@leasehold/client/fair";
  import { LeaseClient, lightStore } from "@leasehold/client/light";
  import { Semaphore } from "@leasehold/client/semaphore";
  export { fair, LeaseUnavailableError, Semaphore, SlotDoneError };
  const client = new LeaseClient({ store: lightStore({ tableName: "leases" }) });
  export const handler = () => client.withLease("job", (lease) => lease.fencingToken);
`;
const middleware = `
  import { leased, leaseLock } from "@leasehold/middy/light";
  export const locked = leaseLock({ tableName: "leases", key: "job" });
  export const handler = leased({ tableName: "leases", key: "job" }, () => 1);
`;

describe.each([
  ["the client", client],
  ["the middleware", middleware],
])("a bundle of %s with the light store", (_name, program) => {
  it("holds nothing of the SDK", async () => {
    const { bytesOf } = await bundled(program);
    expect([...bytesOf.keys()]).toContainEqual(
      expect.stringContaining("client/src/stores/light/http-transport.ts"),
    );
    expect([...bytesOf.keys()].filter((path) => /@(aws-sdk|smithy)\//.test(path))).toEqual([]);
  });

  it.each([
    ["an ES module", "esm", "mjs"],
    ["CommonJS", "cjs", "cjs"],
  ] as const)(
    "starts as %s, leaves no global behind, and asks for credentials",
    async (_format, format, ending) => {
      const folder = await mkdtemp(join(tmpdir(), "leasehold-light-"));
      onTestFinished(() => rm(folder, { recursive: true }));
      const { code } = await bundled(program, { format });
      await writeFile(join(folder, `bundle.${ending}`), code);
      const main = join(folder, "main.mjs");
      await writeFile(
        main,
        `const { handler } = await import("./bundle.${ending}");
       const failure = await handler({}, { functionName: "f", getRemainingTimeInMillis: () => 5000 }).catch((error) => error);
       console.log(failure.code, typeof globalThis.require);`,
      );
      const { stdout } = await run(process.execPath, [main], {
        env: { PATH: process.env.PATH, AWS_REGION: "eu-central-1" },
      });
      expect(stdout).toBe("LEASE_CREDENTIALS_MISSING undefined\n");
    },
  );
});

it.each([
  ["the light store", /client\/src\/stores\/light\//, 11_800],
  ["its signer", /node_modules\/aws4\//, 8_300],
])("%s stays small", async (_name, part, most) => {
  const { bytesOf } = await bundled(client);
  const sizes = [...bytesOf].filter(([path]) => part.test(path)).map(([, bytes]) => bytes);
  expect(sizes).not.toEqual([]);
  expect(sizes.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(most);
});
