// What a program takes along with what it imports, how large that is, and that it starts as a bundle.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { bundled } from "../support/bundled.ts";

const sdk = /@(aws-sdk|smithy)\//;
const core = /client\/src\/core\/client\.ts$/;
const administration = /client\/src\/(admin\/|statements\/admin\.ts)/;
const fairness = /client\/src\/primitives\/fair\//;
const seats = /client\/src\/primitives\/seats\//;
/** What is in a bundle only where its entry is imported. */
const optional = /client\/src\/(checks\/(log|metrics)|core\/together)\.ts$/;

const all = (entry: string): string => `export * from "${entry}";`;
const one = (name: string, entry: string): string => `export { ${name} } from "${entry}";`;

/** The files that a program holds, and what it loads of the SDK. */
async function filesIn(program: string): Promise<readonly string[]> {
  const { bytesOf, loads } = await bundled(program, { external: ["@aws-sdk/*"] });
  return [...bytesOf.keys(), ...loads].filter((file) => file !== "<stdin>");
}

const manifest = new URL("../../packages/client/package.json", import.meta.url);
const { exports } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly exports: object };
const clientEntries = Object.keys(exports).map((entry) => `@leasehold/client${entry.slice(1)}`);
const withAdministration = ["@leasehold/client/admin", "@leasehold/client/internal"];
const withoutSdk = [
  ...[
    "@leasehold/jobs",
    "@leasehold/middy/light",
    "@leasehold/middy/jmespath",
    "@leasehold/middy/powertools",
  ],
  ...["light", "together", "admin", "conformance", "internal", "schema", "record", "metrics", "log"].map(
    (name) => `@leasehold/client/${name}`,
  ),
];

describe("a bundle", () => {
  it.each<[program: string, holds: RegExp, never: RegExp]>([
    ...withoutSdk.map((entry): [string, RegExp, RegExp] => [all(entry), /packages\//, sdk]),
    ...clientEntries
      .filter((entry) => !withAdministration.includes(entry))
      .map((entry): [string, RegExp, RegExp] => [all(entry), /packages\/client\//, administration]),
    [one("LeaseClient", "@leasehold/client"), core, fairness],
    [one("Semaphore", "@leasehold/client/semaphore"), seats, fairness],
    [one("ReadWriteLock", "@leasehold/client/read-write"), seats, fairness],
    [one("leased", "@leasehold/middy"), core, fairness],
    [one("leaseLock", "@leasehold/middy"), core, fairness],
    [one("LeaseClient", "@leasehold/client"), core, seats],
    [one("leaseLock", "@leasehold/middy"), core, seats],
    [one("LeaseClient", "@leasehold/client/light"), core, optional],
    [
      one("parseScheduleExpression", "@leasehold/jobs"),
      /schedule\/expression\.ts$/,
      /src\/(runs|tasks|core)\//,
    ],
    [one("JobRuns", "@leasehold/jobs"), /runs\/job-runs\.ts$/, /src\/tasks\//],
  ])("of %s holds %s, and nothing of %s", async (program, holds, never) => {
    const files = await filesIn(program);
    expect(files).toContainEqual(expect.stringMatching(holds));
    expect(files.filter((file) => never.test(file))).toEqual([]);
  });

  it.each(["schema", "metrics", "environment"])("of the entry %s is one file", async (name) => {
    const files = await filesIn(all(`@leasehold/client/${name}`));
    expect(files).toEqual([expect.stringMatching(new RegExp(`/src/\\w+/${name}\\.ts$`))]);
  });
});

const lightClient = `
  import { LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
  import { fair } from "@leasehold/client/fair";
  import { LeaseClient, lightStore } from "@leasehold/client/light";
  import { Semaphore } from "@leasehold/client/semaphore";
  export { fair, LeaseUnavailableError, Semaphore, SlotDoneError };
  const client = new LeaseClient({ store: lightStore({ tableName: "leases" }) });
  export const handler = () => client.withLease("job", (lease) => lease.fencingToken);
`;
const lightMiddleware = `
  import { leased, leaseLock } from "@leasehold/middy/light";
  export const locked = leaseLock({ tableName: "leases", key: "job" });
  export const handler = leased({ tableName: "leases", key: "job" }, () => 1);
`;

describe.each([
  ["the client", lightClient],
  ["the middleware", lightMiddleware],
])("a bundle of %s with the light store", (_name, program) => {
  it("holds nothing of the SDK", async () => {
    const files = await filesIn(program);
    expect(files).toContainEqual(expect.stringContaining("client/src/stores/light/http-transport.ts"));
    expect(files.filter((file) => sdk.test(file))).toEqual([]);
  });

  it.each([
    ["esm", "mjs"],
    ["cjs", "cjs"],
  ] as const)("starts as %s, leaves no global behind, and asks for credentials", async (format, ending) => {
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
    const env = { PATH: process.env.PATH, AWS_REGION: "eu-central-1" };
    const { stdout } = await promisify(execFile)(process.execPath, [main], { env });
    expect(stdout).toBe("LEASE_CREDENTIALS_MISSING undefined\n");
  });
});

describe("the size of", () => {
  const clientAlone = one("LeaseClient", "@leasehold/client");

  it.each([
    ["the client", clientAlone, 25.7],
    ["the client and the middleware", clientAlone + one("leaseLock", "@leasehold/middy"), 33.8],
  ])("%s is small beside the SDK, minified and gzipped: %s", async (_name, program, kilobytes) => {
    const { code } = await bundled(program, { external: ["@aws-sdk/*", "@smithy/*", "@middy/*"] });
    expect(gzipSync(code, { level: 9 }).length).toBeLessThan(kilobytes * 1_000);
  });

  it("a function with the light store is less than a third of the SDK's", async () => {
    const sdkAlone = await bundled(
      'import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb"; export const client = new DynamoDBClient(); export { UpdateItemCommand };',
    );
    const light = await bundled(
      'import { LeaseClient } from "@leasehold/client/light"; export const client = new LeaseClient({ tableName: "leases" });',
    );
    expect(light.code.length).toBeLessThan(sdkAlone.code.length / 3);
    expect(light.code.length).toBeLessThan(89_500);
  });

  it.each([
    ["the light store", /client\/src\/stores\/light\//, 11_800],
    ["its signer", /node_modules\/aws4\//, 8_300],
  ])("%s stays small", async (_name, part, most) => {
    const { bytesOf } = await bundled(lightClient);
    const sizes = [...bytesOf].filter(([path]) => part.test(path)).map(([, bytes]) => bytes);
    expect(sizes).not.toEqual([]);
    expect(sizes.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(most);
  });
});
