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
const kept = new Set([
  "run",
  "tasks work",
  "jobs backfill",
  "jobs run",
  "dev",
  "console",
  "conformance",
  "doctor",
  "table create",
  "table show",
  "table check",
  "table set",
]);
/** They read and write files: only in a folder of the test's. */
const withFiles = new Set(["acquire", "renew", "release", "check"]);
const names = Object.keys(commands);
const folder = mkdtempSync(join(tmpdir(), "leasehold-fuzz-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** After this much time the user interrupts what still waits. */
const interruptedMs = 250;
const longestMs = 20_000;

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
  hostileText,
);
const key = fc.oneof(
  fc.constantFrom("k", "busy", "sem", "job", "set", "2025-12-31T08:00:00.000Z", "bash", "LEASE_LOST", "run"),
  value,
);

/** A flag of the command with a value, without one, or none at all. */
function flagFor(name: string): fc.Arbitrary<readonly string[]> {
  const known = Object.entries(flagsOf.get(name) ?? globalFlags).filter(
    ([flag]) => flag !== "help" && flag !== "dry-run",
  );
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(fc.constantFrom(...known), value)
        .map(([[flag, { placeholder }], text]) =>
          placeholder === undefined ? [`--${flag}`] : [`--${flag}`, text],
        ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom(...known), value).map(([[flag], text]) => [`--${flag}=${text}`]),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(
        fc.constantFrom("-t", "-o", "-q", "-y", "-vq", "-", "--", "---", "-E", "--no-such"),
        value,
      ),
    },
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
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Error("SIGINT")), interruptedMs);
  let giveUp = (): void => {};
  const late = new Promise<never>((_, reject) => {
    const hanging = setTimeout(() => reject(new Error(`no end within ${longestMs} ms`)), longestMs);
    giveUp = () => clearTimeout(hanging);
  });
  const calling = leasehold(args, {
    store,
    clock,
    signal: controller.signal,
    ...(answers && { answers }),
    env: { AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:1", NO_COLOR: "1" },
  });
  const called = await Promise.race([calling, late]).finally(() => {
    clearTimeout(timer);
    giveUp();
  });
  const { code, stdout, stderr } = called;
  if (!args.some((word) => chosen.test(word))) expect(documented, JSON.stringify(called)).toContain(code);
  // What DynamoDB would reject is a fault of the command, though its code is one of the service's.
  expect(stderr).not.toContain("the expression is not valid");
  // --verbose asks for it.
  const isVerbose = args.some((word) => /^(--verbose|-\w*v)/.test(word));
  if (!isVerbose) expect(`${stdout}${stderr}`).not.toMatch(/\n\s+at \S.*:\d+:\d+/);
  if (code === exitCodes.usage) expect(stderr).not.toBe("");
  // Colours were asked for, or a question was drawn on a terminal.
  const isColored = answers !== undefined || args.some((word) => word.includes("color"));
  // What moves a terminal's cursor, or turns its text around, is written out.
  const acted = ["\u001b", "\u0007", "\u202e"].filter((sign) => `${stdout}${stderr}`.includes(sign));
  if (!isColored) expect(acted).toEqual([]);
  return code;
}

fuzz(
  "any call of a command that looks, writes or prints ends with a documented code and a message",
  fc.tuple(
    fc.constantFrom(...names.filter((name) => !kept.has(name))).chain(lineOf),
    fc.option(fc.array(fc.constantFrom("y", "n", "k", "", "{}", '{"id":"9"}', "\u001b"), { maxLength: 3 }), {
      nil: undefined,
    }),
  ),
  async ([args, answers]) => ((await check(args, answers)) < exitCodes.usage ? [] : undefined),
  { few: 150, many: 4_000, accepted: { share: 0.05, options: [] } },
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
    await check(words);
    const { code } = await leasehold(words, { store: new MemoryLeaseStore() });
    expect(code).toBe(isHelp ? exitCodes.done : exitCodes.usage);
  },
  { few: 80, many: 2_000 },
);

fuzz(
  "words that are no command are refused as usage, or show the commands",
  fc.array(
    fc.oneof(value, hostileText).filter((word) => !names.some((name) => name.split(" ")[0] === word)),
    { maxLength: 4 },
  ),
  async (args) => {
    await check(args);
  },
  { few: 100, many: 10_000 },
);
