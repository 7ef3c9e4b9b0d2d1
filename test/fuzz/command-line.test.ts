// Any command line, of real commands, flags and values and of garbage: an exit code that is documented, a message, no stack trace,
// nothing that a terminal would act on, and an end in time.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LeaseClient } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import fc from "fast-check";
import { afterAll, expect } from "vitest";
import { commands } from "../../packages/cli/src/commands/index.ts";
import { exitCodes } from "../../packages/cli/src/exit-codes.ts";
import { globalFlags } from "../../packages/cli/src/flags.ts";
import { leasehold } from "../support/command-line.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText } from "./hostile.ts";

/** They start programs or servers, or ask AWS: here their command lines are wrong, or ask for help. */
const kept = new Set(
  "run,tasks work,jobs backfill,jobs run,dev,console,conformance,doctor,table create,table show,table check,table set".split(
    ",",
  ),
);
/** They read and write files: only in a folder of the test's. */
const withFiles = new Set(["acquire", "renew", "release", "check"]);
const names = Object.keys(commands);
const folder = mkdtempSync(join(tmpdir(), "leasehold-fuzz-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** After this much time the user interrupts what still waits. */
const interruptedMs = 250;

const flagsOf = new Map(
  await Promise.all(
    names.map(async (name) => [name, { ...globalFlags, ...(await commands[name]?.load())?.flags }] as const),
  ),
);

const value = fc.oneof(
  fc.constantFrom(
    ..."30s 5m 0 -1 1 2 500 1e9 99999999999999999999 1.5 x lease k held free a job set today orders/ * ** {} [1] null true 2025-12-31T10:00:00.000Z minute rate(1d) cron(0 8 * * ? *) UTC json table never http://127.0.0.1:1 arn:aws:dynamodb:eu-central-1:1:table/x --".split(
      " ",
    ),
  ),
  fc.constant("\u001b[2J\u202e"),
  hostileText,
);
const key = fc.oneof(
  fc.constantFrom("k", "busy", "sem", "job", "set", "2025-12-31T08:00:00.000Z", "bash", "LEASE_LOST", "run"),
  value,
);

/** A flag of the command, with a value or without one, or what looks like a flag. */
function flagFor(name: string): fc.Arbitrary<readonly string[]> {
  const known = Object.keys(flagsOf.get(name) ?? {}).filter((flag) => flag !== "help" && flag !== "dry-run");
  const odd = fc.constantFrom("-t", "-o", "-q", "-y", "-vq", "-", "--", "---", "-E", "--no-such");
  const flag = fc.constantFrom(...known).map((one) => `--${one}`);
  return fc.oneof(
    { weight: 5, arbitrary: fc.tuple(flag, value) },
    { weight: 2, arbitrary: fc.tuple(flag) },
    { weight: 2, arbitrary: fc.tuple(flag, value).map((words) => [words.join("=")]) },
    fc.tuple(odd, value),
  );
}

const file = fc.constantFrom("one.json", "two.json", "missing/three.json").map((name) => join(folder, name));

function lineOf(name: string): fc.Arbitrary<readonly string[]> {
  const operands = withFiles.has(name)
    ? name === "acquire"
      ? fc.tuple(key, file)
      : fc.tuple(file)
    : fc.array(key, { maxLength: 3 });
  const flags = fc.array(flagFor(name), { maxLength: 3 });
  return fc.tuple(operands, flags).map(([given, more]) => {
    const words = [...name.split(" "), ...given, ...more.flat()];
    return withFiles.has(name) ? words.filter((word) => word !== "--") : words;
  });
}

/** A table with something of each kind in it. */
async function furnished(): Promise<{ readonly store: MemoryLeaseStore; readonly clock: ManualClock }> {
  const [store, clock] = [new MemoryLeaseStore(), new ManualClock()];
  const client = new LeaseClient({ store, clock, owner: "evil \u001b[31m owner" });
  await client.acquire("k", { data: { note: "\u001b]0;title\u0007" } });
  await (await client.acquire("free")).release();
  await new Semaphore(client, "sem", { permits: 2 }).acquire();
  await new JobRuns(client, "job").run("2025-12-31T08:00:00.000Z", async () => 1);
  await new TaskSet(client, "set").add([{ id: "1", payload: { a: 1 } }, { id: "2" }]);
  return { store, clock };
}

const documented = new Set<number>(Object.values(exitCodes).filter((code) => code !== exitCodes.fault));
// A user chooses the code of a lock that is held, from 0 to 255.
const chosen = /^(-E|--held-exit|--done-exit)/;

/** Gives the exit code. */
async function check(args: readonly string[], answers?: readonly string[]): Promise<number> {
  const { store, clock } = await furnished();
  const called = await leasehold(args, {
    store,
    clock,
    signal: AbortSignal.timeout(interruptedMs),
    ...(answers && { answers }),
    env: { AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:1", NO_COLOR: "1" },
  });
  const { code, stdout, stderr } = called;
  if (!args.some((word) => chosen.test(word))) expect(documented, JSON.stringify(called)).toContain(code);
  // What DynamoDB would reject is a fault of the command, though its code is one of the service's.
  expect(stderr).not.toContain("the expression is not valid");
  // --verbose asks for it.
  const isVerbose = args.some((word) => /^(--verbose|-\w*v)/.test(word));
  if (!isVerbose) expect(`${stdout}${stderr}`).not.toMatch(/\n\s+at \S.*:\d+:\d+/);
  if (code === exitCodes.usage) expect(stderr).not.toBe("");
  // What moves a terminal's cursor, or turns its text around, is written out. A question is drawn on the terminal of stderr.
  const printed = answers === undefined ? `${stdout}${stderr}` : stdout;
  const acted = ["\u001b", "\u0007", "\u202e"].filter((sign) => printed.includes(sign));
  if (!args.some((word) => word.includes("color"))) expect(acted).toEqual([]);
  return code;
}

fuzz(
  "any call of a command that looks, writes or prints, and of none, ends with a documented code and a message",
  fc.tuple(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom(...names.filter((name) => !kept.has(name))).chain(lineOf),
      },
      fc.array(
        value.filter((word) => !names.some((name) => name.split(" ")[0] === word)),
        { maxLength: 4 },
      ),
    ),
    fc.option(fc.array(fc.constantFrom("y", "n", "k", "", "{}", '{"id":"9"}', "\u001b"), { maxLength: 3 }), {
      nil: undefined,
    }),
  ),
  async ([args, answers]) => ((await check(args, answers)) < exitCodes.usage ? [] : undefined),
  { few: 200, many: 5_000, accepted: { share: 0.05, options: [] } },
);

fuzz(
  "every command shows its help, and refuses a flag that it does not have",
  fc.tuple(fc.constantFrom(...names), fc.boolean(), fc.array(value, { maxLength: 2 })),
  async ([name, isHelp, more]) => {
    const words = [
      ...name.split(" "),
      isHelp ? "--help" : "--no-such-flag",
      ...more.filter((word) => !word.startsWith("-")),
    ];
    expect(await check(words)).toBe(isHelp ? exitCodes.done : exitCodes.usage);
  },
  { few: 80, many: 2_000 },
);
