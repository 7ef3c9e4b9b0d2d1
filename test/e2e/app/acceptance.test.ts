// @module-tag long
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { LeaseLostError } from "@leasehold/client";
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { acceptanceJobKey, acceptanceKeyPrefix } from "../../../functions/acceptance/schema.ts";
import { sweep } from "../../acceptance/key-space.ts";
import { endpointsOf, localStackName, startStacks } from "../../acceptance/local-deployment.ts";
import { leaseTable, startTestApp, type TestApp, until } from "../../support/app.ts";
import { op, startProxy } from "../../support/proxy.ts";
import { failWith } from "../../support/proxy-behaviours.ts";
import { sdkClient } from "../../support/table.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

let it: TestApp;
let stacks: Awaited<ReturnType<typeof startStacks>>;

beforeAll(async () => {
  it = await startTestApp();
  stacks = await startStacks(it.app);
});
afterEach(async () => {
  const dynamodb = sdkClient(inject("engine"));
  await sweep(dynamodb, it.app.tableName(leaseTable));
  dynamodb.destroy();
});
afterAll(async () => {
  await stacks?.close();
  await it?.[Symbol.asyncDispose]();
});

interface Run {
  readonly output: () => string;
  readonly exit: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts acceptance as for AWS: all that differs is where the SDK finds the services. */
function start(args: readonly string[], more: Record<string, string | undefined> = {}): Run {
  const engine = String(inject("engine").clientConfig.endpoint);
  const { AWS_PROFILE: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    ["--conditions=leasehold-source", "--import", "tsx", "test/acceptance/main.ts", ...args],
    {
      cwd: root,
      env: {
        ...env,
        DYNAMODB_ENDPOINT: "aws",
        AWS_EC2_METADATA_DISABLED: "true",
        AWS_CONFIG_FILE: "/dev/null",
        AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
        ...endpointsOf(it.app, engine, stacks.endpoint),
        ...more,
      },
    },
  );
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      text += chunk;
    });
  }
  onTestFinished(() => void child.kill("SIGKILL"));
  return {
    output: () => text,
    exit: new Promise((resolve) => child.on("close", resolve)),
    kill: (signal) => void child.kill(signal),
  };
}

/** The keys in the lease table. */
async function keys(): Promise<string[]> {
  return (await it.items(it.app.tableName(leaseTable))).map(({ pk }) => String(pk));
}

const running = () => it.app.executions().filter(({ status }) => status === "RUNNING");

describe("a deployment that cannot be checked is named, with what to do", () => {
  const cases: [string, readonly string[], Record<string, string | undefined>, RegExp][] = [
    ["no region", ["--stack", localStackName], { AWS_REGION: undefined }, /^NO_REGION: .*set AWS_REGION/m],
    ["no such stack", ["--stack", "Nowhere"], {}, /^NO_SUCH_STACK: There is no stack Nowhere in us-east-1/m],
  ];
  test.each(cases)("%s", async (_, args, env, message) => {
    const run = start(args, env);
    expect(await run.exit).toBe(1);
    expect(run.output()).toMatch(message);
    expect(await keys()).toEqual([]);
  });

  test("a permission that is missing ends the checks at the first request that needs it", async () => {
    const proxy = await startProxy(inject("engine"));
    onTestFinished(() => proxy.close());
    proxy.always(op("UpdateItem"), failWith("AccessDeniedException", 400));
    const { endpoint } = proxy.clientConfig as { readonly endpoint: string };
    const run = start(["--stack", localStackName], { AWS_ENDPOINT_URL_DYNAMODB: endpoint });
    expect(await run.exit).toBe(1);
    expect(run.output()).toMatch(/^ACCESS_DENIED: .*docs\/deploy.md/m);
    expect(proxy.count("UpdateItem")).toBe(1);
  });

  test("a stack that has no such outputs", async () => {
    const other = await startStacks({ outputs: { [`${localStackName}.Other`]: "x" } });
    onTestFinished(() => other.close());
    const run = start(["--stack", localStackName], { AWS_ENDPOINT_URL_CLOUDFORMATION: other.endpoint });
    expect(await run.exit).toBe(1);
    expect(run.output()).toMatch(/^OUTPUTS_MISSING: .*no output LeaseTableName/m);
  });
});

test("a promise that is broken fails its check, by name; Ctrl-C ends it with 130, and removes what was made", async () => {
  const squatter = await it.leases.acquire(acceptanceJobKey, { leaseDurationMs: 3_600_000 });
  const run = start(["--stack", localStackName]);
  await until("executions", () => running().length > 0);
  run.kill("SIGINT");
  expect(await run.exit).toBe(130);
  expect(run.output()).toMatch(/^FAILED +two triggers of one scheduled time, at once .* 0 ran, 2 skipped$/m);
  expect(run.output()).toMatch(/\n3 of \d+ checks failed\.\n/);
  await expectRemoved(run);
  // The key is acceptance's own: what was there is gone.
  await expect(squatter.renew()).rejects.toBeInstanceOf(LeaseLostError);
});

test("Ctrl-C while contracts are at work removes what was made", async () => {
  const run = start(["--stack", localStackName]);
  await until("tasks", async () =>
    (await keys()).some((key) => key.startsWith(`${acceptanceKeyPrefix}tasks/`)),
  );
  run.kill("SIGINT");
  expect(await run.exit).toBe(130);
  await expectRemoved(run);
});

async function expectRemoved(run: Run): Promise<void> {
  expect(run.output()).toContain("Ended by SIGINT");
  expect(run.output()).toContain("Nothing is left.");
  expect(await keys()).toEqual([]);
  // What hears of ends looks once more, some seconds later, and ends by itself.
  await until("the end of every execution", () => running().length === 0);
}

test("every check holds on the deployed app, and nothing is left, or touched, but what others have", async () => {
  const theirs = await it.leases.acquire("somebody else's", { leaseDurationMs: 3_600_000 });
  // What an earlier run has left that was killed.
  await it.leases.acquire(`${acceptanceKeyPrefix}left`);
  const run = start(["--stack", localStackName]);
  const code = await run.exit;
  expect(run.output()).toMatch(/\nAll \d+ checks hold\.\n$/);
  expect(code).toBe(0);
  expect(run.output()).toContain("Nothing is left.");
  for (const name of ["Lock: acquire a new lock", "contract lease", "two triggers of one scheduled time"]) {
    expect(run.output()).toMatch(new RegExp(`^ok +${name}`, "m"));
  }
  expect(await keys()).toEqual(["somebody else's"]);
  // What hears of ends looks once more, some seconds later, and ends by itself.
  await until("the end of every execution", () => running().length === 0);
  await theirs.renew();
  await it.deleteItem("somebody else's");
});
