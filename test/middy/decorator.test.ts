import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Logger } from "@aws-lambda-powertools/logger";
import { Metrics } from "@aws-lambda-powertools/metrics";
import { Tracer } from "@aws-lambda-powertools/tracer";
import { InvalidOptionsError } from "@leasehold/client";
import { type LeaseLockOptions, leased } from "@leasehold/middy";
import { powertools } from "@leasehold/middy/powertools";
import type { Context } from "aws-lambda";
import { transform } from "esbuild";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { importerOf } from "./decorators/standard.ts";
import { bench } from "./support.ts";

type ImportEvent = { readonly file: string };
type Handler = (event: ImportEvent, context: Context) => Promise<string>;

/** Both forms of decorators, each made by the compiler that users have: `prefix` is a field of the instance. */
const forms = {
  "TypeScript 5": false,
  experimentalDecorators: true,
} as const;

async function classesOf(experimentalDecorators: boolean): Promise<typeof importerOf> {
  const source = await readFile(join(import.meta.dirname, "decorators/standard.ts"), "utf8");
  const { code } = await transform(source, {
    loader: "ts",
    format: "esm",
    target: "es2022",
    tsconfigRaw: { compilerOptions: { experimentalDecorators } },
  });
  const { importerOf: classes } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return classes;
}

describe.each(Object.entries(forms))("a method under @leased, with the decorators of %s", (_, isLegacy) => {
  async function setUp(options: Partial<LeaseLockOptions<ImportEvent>> = {}) {
    const b = bench();
    const Importer = (await classesOf(isLegacy))(leased, {
      client: b.client,
      clock: b.clock,
      key: ({ file }) => `import/${file}`,
      metrics: false,
      ...options,
    });
    const importer = new Importer("imported ");
    const handler: Handler = importer.handler.bind(importer) as Handler;
    return { ...b, Importer, importer, handler };
  }

  test("runs under the lock, on its instance, and the lock is free afterwards", async () => {
    const { handler, context, holder } = await setUp();
    expect(await handler({ file: "a" }, context())).toBe("imported a under import/a");
    expect(await holder("import/a")).toBeUndefined();
  });

  test("does not run while the lock is held, also of another instance", async () => {
    const { Importer, handler, context, other } = await setUp();
    await other.acquire("import/a");
    const second = new Importer("second ");
    for (const each of [handler, second.handler.bind(second) as Handler]) {
      await expect(each({ file: "a" }, context())).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE" });
    }
    expect(await second.handler({ file: "b" }, context())).toBe("second b under import/b");
  });

  test("has two parameters: Lambda refuses to run a handler that takes a callback", async () => {
    const { handler, importer } = await setUp();
    expect([handler.length, importer.handler.length]).toEqual([2, 2]);
  });

  test("refuses bad options when the class is made", async () => {
    await expect(setUp({ whenHeld: "queue" as never })).rejects.toMatchObject({ option: "whenHeld" });
  });
});

test.each<[string, readonly unknown[]]>([
  ["a class", [class {}, { kind: "class", name: "Importer" }]],
  ["a field", [undefined, { kind: "field", name: "handler" }]],
  ["a getter", [() => "handler", { kind: "getter", name: "handler" }]],
  ["a field, with experimentalDecorators", [{}, "handler", undefined]],
  ["a getter, with experimentalDecorators", [{}, "handler", { get: () => "handler" }]],
  ["a class, with experimentalDecorators", [class {}]],
])("a member that is no method is refused by name: %s", (_, members) => {
  const decorate = leased({ client: bench().client, key: "k" }) as (...all: readonly unknown[]) => unknown;
  expect(() => decorate(...members)).toThrow(InvalidOptionsError);
  expect(() => decorate(...members)).toThrow(/a method/);
});

test("a handler that is none is refused, and is no decorator", () => {
  expect(() => leased({ client: bench().client, key: "k" }, undefined as never)).toThrow(
    /handler is undefined/,
  );
});

describe("beside the decorators of Powertools", () => {
  const lines: string[] = [];
  beforeEach(() => {
    lines.length = 0;
    vi.spyOn(process.stdout, "write").mockImplementation((text) => lines.push(String(text)) > 0);
  });
  afterEach(() => void vi.restoreAllMocks());

  test("the metrics of the lock are in the line of the user's, also of an invocation that is skipped", async () => {
    const b = bench();
    const logger = new Logger({ serviceName: "orders" });
    const metrics = new Metrics({ namespace: "shop", serviceName: "orders" });
    const tracer = new Tracer({ serviceName: "orders", captureHTTPsRequests: false });
    const { onEvent, ...reports } = powertools({ logger, metrics, tracer });
    // By its name alone, so that the compiler does not read it with the options of the tests.
    const file = "./decorators/legacy/importer.ts";
    const handler: Handler = (await import(file)).importerOf(
      { store: b.store, clock: b.clock, key: "job", whenHeld: "skip", onEvent, ...reports },
      { logger, metrics, tracer },
    );
    expect(await handler({ file: "a" }, b.context())).toBe("imported a under job");
    await b.other.acquire("job");
    expect(await handler({ file: "a" }, b.context())).toBeUndefined();
    const written = lines.map((line) => JSON.parse(line));
    expect(written.filter(({ _aws }) => _aws !== undefined)).toEqual([
      expect.objectContaining({ LeaseAcquired: 1, LeaseReleased: 1 }),
      expect.objectContaining({ LeaseContended: 1 }),
    ]);
    expect(written.find(({ event }) => event === "acquired")).toMatchObject({ function_name: "job" });
  });

  test("a method has the types of a handler of Powertools and of Lambda", async () => {
    const project = join(import.meta.dirname, "decorators/legacy/tsconfig.json");
    const tsc = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", project]);
    expect(stdout).toBe("");
  });
});
