// @module-tag long
import { execFile } from "node:child_process";
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build, transform } from "esbuild";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { checkTemplate } from "../consumers/template.ts";
import {
  installOldest,
  installPacked,
  oldestCdk,
  oldestNode,
  oldestSdk,
  oldestTypeScript,
  type PackedProject,
} from "../support/packed.ts";
import { describePackedContents } from "./packed-contents.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const fixtures = join(import.meta.dirname, "fixtures/packed");
const newestTypeScript = join(root, "node_modules/typescript/bin/tsc");
/** What the programs themselves need, beside the packages and what those ask for. */
const ownDependencies = [
  "@aws-sdk/util-dynamodb",
  "@middy/core",
  "@opentelemetry/context-async-hooks",
  "@opentelemetry/sdk-trace",
  "@types/aws-lambda",
  "@types/node",
  "undici-types",
];

let project: PackedProject;

beforeAll(async () => {
  await installOldest();
  project = await installPacked(ownDependencies);
});

afterAll(async () => {
  await project.remove();
});

/** Compiles files of the project as its users would, and gives what the compiler has to say. */
async function compile(
  compiler: string,
  options: Readonly<Record<string, unknown>>,
  files: readonly string[],
): Promise<readonly string[]> {
  // What users have: no condition of ours, and declarations that have to stand for themselves.
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022", "esnext.disposable"],
    strict: true,
    esModuleInterop: true,
    skipLibCheck: false,
    types: ["node"],
    ...options,
  };
  const config = join(project.folder, `tsconfig-${crypto.randomUUID()}.json`);
  await writeFile(config, JSON.stringify({ compilerOptions, files }));
  const output = await run(process.execPath, [compiler, "-p", config], { cwd: project.folder }).then(
    () => "",
    (error: { stdout?: string; message: string }) => error.stdout || error.message,
  );
  // Middy's own declarations name a package that is optional.
  return output.split("\n").filter((line) => line !== "" && !line.includes("node_modules/@middy/core/"));
}

interface Outcome {
  readonly node: string;
  readonly shown: readonly string[];
}

async function outcomeOf(
  node: string,
  file: string,
  argument: unknown,
  cwd = project.folder,
): Promise<Outcome> {
  const { stdout, stderr } = await run(node, [file, JSON.stringify(argument)], { cwd });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Outcome;
}

describePackedContents(() => project);

const nodes = [
  ["the oldest Node", oldestNode],
  ["the newest Node", process.execPath],
] as const;

describe("the packages' types", () => {
  const oldest = { compiler: oldestTypeScript(), age: "the oldest" };
  const newest = { compiler: newestTypeScript, age: "the newest" };
  const both = ["all.cts", "all.mts"];
  // A handler under a lock says what a skipped invocation answers: to each compiler.
  const handlers = ["handlers.cts", "handlers.mts"];
  const cases = [
    { ...oldest, moduleResolution: "node10", module: "commonjs", files: ["all.ts"] },
    { ...oldest, moduleResolution: "node16", module: "node16", files: [...both, ...handlers] },
    { ...oldest, moduleResolution: "bundler", module: "esnext", files: ["all.ts"] },
    { ...newest, moduleResolution: "node16", module: "node16", files: [...both, ...handlers] },
    { ...newest, moduleResolution: "nodenext", module: "nodenext", files: both },
    { ...newest, moduleResolution: "bundler", module: "esnext", files: ["all.ts"] },
    { ...newest, moduleResolution: "bundler", module: "commonjs", files: ["all.ts"] },
  ];

  beforeAll(async () => {
    // The CDK's declarations take a compiler of JavaScript half a minute: those compile in the program below.
    const entryPoints = project.entryPoints.filter((name) => name !== "@leasehold/cdk");
    const imports = entryPoints.map((name, index) => `import * as module${index} from "${name}";`);
    const modules = entryPoints.map((_, index) => `module${index}`);
    const text = `${imports.join("\n")}
export const modules: object[] = [${modules.join(", ")}];
const client = new module0.LeaseClient({ tableName: "leases" });
// @ts-expect-error: it would be no error if the types were not found
client.acquire(42);
`;
    for (const file of ["all.ts", ...both]) await writeFile(join(project.folder, file), text);
    for (const file of handlers) await copyFile(join(fixtures, "handlers.ts"), join(project.folder, file));
  });

  it.each(cases)("are found by $age TypeScript under $moduleResolution, for $module", async (each) => {
    const { compiler, module, moduleResolution, files } = each;
    expect(await compile(compiler, { module, moduleResolution, noEmit: true }, files)).toEqual([]);
  });
});

describe("the packages, installed", () => {
  it("support the oldest Node that they are proved on", async () => {
    const { stdout } = await run(oldestNode, ["--version"]);
    expect(stdout.trim()).toBe("v22.0.0");
  });

  it.each(nodes)("are one and the same for require and for import on %s", async (_name, node) => {
    const file = join(project.folder, "formats.cjs");
    await copyFile(join(fixtures, "formats.cjs"), file);
    const { shown } = await outcomeOf(node, file, project.entryPoints);
    expect(shown).toHaveLength(4);
  });

  it.each(["cjs", "esm"] as const)(
    "are in a bundle once, whoever requires or imports them: %s",
    async (format) => {
      const entry = join(project.folder, "bundled.ts");
      await copyFile(join(fixtures, "bundled.ts"), entry);
      const outfile = join(project.folder, `bundle-${format}.${format === "esm" ? "mjs" : "cjs"}`);
      const { metafile } = await build({
        entryPoints: [entry],
        absWorkingDir: project.folder,
        outfile,
        format,
        bundle: true,
        metafile: true,
        platform: "node",
        target: "node22",
        external: ["@aws-sdk/*"],
        // As CDK's NodejsFunction advises where CommonJS is in an ES module; here assert is required by none but us.
        ...(format === "esm"
          ? {
              banner: {
                js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
              },
            }
          : {}),
      });
      const inputs = Object.keys(metafile.inputs).filter((path) => path.includes("@leasehold"));
      expect(inputs.length).toBeGreaterThan(20);
      expect(inputs.filter((path) => !path.includes("/dist/esm/"))).toEqual([]);
      for (const [, node] of nodes) {
        const { stdout, stderr } = await run(node, [outfile], { cwd: project.folder });
        expect(stderr).toBe("");
        expect(JSON.parse(stdout)).toMatchObject({ outside: false });
        // The same bundle beside an installed copy, as a Lambda layer has one.
        const beside = join(project.folder, `beside-${format}.cjs`);
        await writeFile(
          beside,
          `globalThis.outside = require("@leasehold/client"); void import(${JSON.stringify(outfile)});`,
        );
        const second = await run(node, [beside], { cwd: project.folder });
        expect(JSON.parse(second.stdout)).toMatchObject({ outside: true });
      }
    },
  );
});

describe("the client without aws4, which only the light store needs", () => {
  let folder: string;

  beforeAll(async () => {
    // Outside the other project, where Node would find aws4.
    folder = await mkdtemp(join(tmpdir(), "leasehold-without-aws4-"));
    await cp(join(project.folder, "node_modules"), join(folder, "node_modules"), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith("node_modules/aws4"),
    });
  });

  afterAll(() => rm(folder, { recursive: true }));

  it.each(nodes)(
    "loads every entry, and says what to install for the light store, on %s",
    async (_name, node) => {
      const entries = project.entryPoints.filter((entry) => entry.startsWith("@leasehold/client"));
      const file = join(folder, "light.mjs");
      await writeFile(
        file,
        `for (const entry of ${JSON.stringify(entries)}) await import(entry);
      const { LeaseClient } = await import("@leasehold/client/light");
      const error = await new LeaseClient({ tableName: "leases" }).acquire("key").catch((thrown) => thrown);
      console.log(JSON.stringify({ shown: [error.name, error.message] }));`,
      );
      const { shown } = await outcomeOf(node, file, {}, folder);
      expect(shown).toEqual([
        "InvalidOptionsError",
        "the package aws4, which signs the light store's requests, is not installed; allowed: 1.13.2 or newer; npm install aws4",
      ]);
    },
  );
});

describe("packages whose peers are there in two formats", () => {
  const formats = [
    ["CommonJS on the oldest Node", "cjs", oldestNode],
    ["CommonJS on the newest Node", "cjs", process.execPath],
    ["ES modules on the oldest Node", "esm", oldestNode],
    ["ES modules on the newest Node", "esm", process.execPath],
  ] as const;

  /** Gives a fixture in one format. What it imports by name is loaded by Node. */
  async function fixtureIn(format: "cjs" | "esm", name: string): Promise<string> {
    const outfile = join(project.folder, `${name}.${format === "esm" ? "mjs" : "cjs"}`);
    const external = ["@aws/*", "@aws-sdk/*", "@leasehold/*", "@opentelemetry/*"];
    const entryPoints = [join(fixtures, `${name}.ts`)];
    await build({ entryPoints, outfile, format, external, bundle: true, platform: "node", target: "node22" });
    return outfile;
  }

  it.each(formats)("hold the leases of durable functions, as %s", async (_name, format, node) => {
    const { shown } = await outcomeOf(node, await fixtureIn(format, "durable"), {});
    expect(shown).toHaveLength(5);
  });

  it.each(formats)("give OpenTelemetry the spans of leases, as %s", async (_name, format, node) => {
    const { shown } = await outcomeOf(node, await fixtureIn(format, "telemetry"), {});
    expect(shown).toEqual(["leasehold.acquire", "leasehold.hold"]);
  });

  it("refuse a durable function where two copies of AWS's SDK meet", async () => {
    const file = join(project.folder, "two-copies.cjs");
    await copyFile(join(fixtures, "two-copies.cjs"), file);
    const { shown } = await outcomeOf(process.execPath, file, {});
    expect(shown).toEqual(["InvalidOptionsError", "InvalidOptionsError"]);
  });
});

describe("a CDK app of the packages' users", () => {
  const consumers = join(root, "test/consumers/fixtures");

  /** Makes the app in a new folder, in one format. */
  async function appIn(folder: string, format: "cjs" | "esm"): Promise<void> {
    await mkdir(folder, { recursive: true });
    const type = format === "esm" ? "module" : "commonjs";
    await writeFile(join(folder, "package.json"), JSON.stringify({ type }));
    for (const name of ["app", "stranger-stack"]) {
      const source = await readFile(join(consumers, `${name}.ts`), "utf8");
      const { code } = await transform(source, { loader: "ts", format });
      await writeFile(join(folder, `${name}.js`), code);
    }
  }

  it.concurrent.each([
    ["CommonJS on the oldest Node", "cjs", oldestNode],
    ["ES modules on the newest Node", "esm", process.execPath],
  ] as const)("synthesizes each construct, in %s", async (_name, format, node) => {
    const folder = join(project.folder, `app-${format}`);
    await appIn(folder, format);
    const { stderr } = await run(node, ["app.js", "cdk.out"], { cwd: folder });
    expect(stderr).toBe("");
    await checkTemplate(join(folder, "cdk.out"));
  });

  describe("with the oldest AWS CDK of the peer range", () => {
    let folder: string;

    beforeAll(async () => {
      // Another project, with the same packages and the same app.
      folder = join(project.folder, "oldest-cdk");
      await appIn(folder, "esm");
      const modules = join(folder, "node_modules");
      await cp(join(project.folder, "node_modules"), modules, { recursive: true, verbatimSymlinks: true });
      for (const [name, path] of oldestCdk) {
        await rm(join(modules, name));
        await symlink(path, join(modules, name));
      }
    });

    it("has the versions that the package says it needs", async () => {
      const needed: Record<string, string> = {};
      for (const [name, path] of oldestCdk) {
        const { version } = JSON.parse(await readFile(join(path, "package.json"), "utf8"));
        needed[name] = `^${version}`;
      }
      const cdk = project.manifests.find(({ name }) => name === "@leasehold/cdk");
      expect(cdk?.peerDependencies).toEqual(needed);
    });

    it("synthesizes each construct", async () => {
      const { stderr } = await run(process.execPath, ["app.js", "cdk.out"], { cwd: folder });
      expect(stderr).toBe("");
      await checkTemplate(join(folder, "cdk.out"));
    });

    it("has types that the package's fit to", async () => {
      const file = join(folder, "types.mts");
      const wrong =
        "\n// @ts-expect-error: it would be no error if the types were not found\nexport const no: LeaseTable = 42;\n";
      await writeFile(
        file,
        `import type { LeaseTable } from "@leasehold/cdk";\nexport type * from "@leasehold/cdk";${wrong}`,
      );
      const options = { module: "nodenext", noEmit: true, skipLibCheck: false };
      const problems = await compile(newestTypeScript, options, [file]);
      // The library's own declarations are not ours to judge.
      expect(problems.filter((line) => !/node_modules\/(aws-cdk-lib|@aws-cdk)\//.test(line))).toEqual([]);
    });
  });
});

describe("a program of the packages' users", () => {
  const sdk = "@aws-sdk/client-dynamodb";
  const files = ["program.cts", "program.mts"];
  /** Another project, with the same packages and programs. */
  const withOldestSdk = (): string => join(project.folder, "oldest-sdk");

  beforeAll(async () => {
    for (const file of files) await copyFile(join(fixtures, "program.ts"), join(project.folder, file));
    expect(await compile(newestTypeScript, { module: "nodenext" }, files)).toEqual([]);
    const modules = join(withOldestSdk(), "node_modules");
    await cp(join(project.folder, "node_modules"), modules, { recursive: true, verbatimSymlinks: true });
    await rm(join(modules, sdk), { recursive: true });
    await symlink(oldestSdk, join(modules, sdk));
    await copyFile(join(project.folder, "program.mjs"), join(withOldestSdk(), "program.mjs"));
  });

  it.concurrent.each([
    ["an ES module on the oldest Node", "program.mjs", oldestNode, () => project.folder],
    ["CommonJS on the newest Node", "program.cjs", process.execPath, () => project.folder],
    [
      "an ES module with the oldest AWS SDK of the peer range",
      "program.mjs",
      process.execPath,
      withOldestSdk,
    ],
  ])("finds what is promised, as %s", async (_name, file, node, folderOf) => {
    const { clientConfig } = inject("engine");
    const tableName = `leases-${crypto.randomUUID()}`;
    const path = join(folderOf(), file);
    expect(await readFile(path, "utf8")).toMatch(
      file.endsWith(".cjs") ? /require\("@leasehold/ : /from "@leasehold/,
    );
    const { entryPoints } = project;
    const { shown } = await outcomeOf(node, path, { tableName, clientConfig, entryPoints }, folderOf());
    expect(shown).toHaveLength(14);
  });

  describe("with the oldest AWS SDK of the peer range", () => {
    it("is the one that the packages say they need", async () => {
      const { version } = JSON.parse(await readFile(join(oldestSdk, "package.json"), "utf8"));
      const client = project.manifests.find(({ name }) => name === "@leasehold/client");
      expect(client?.peerDependencies).toMatchObject({ [sdk]: `^${version}` });
    });

    it("makes the packages' own client, and hears that there is no answer", async () => {
      const { endpoint = "", region = "" } = inject("engine").clientConfig as Record<string, string>;
      const file = join(withOldestSdk(), "default-client.mjs");
      await copyFile(join(fixtures, "default-client.mjs"), file);
      const { shown } = await outcomeOf(process.execPath, file, { endpoint, region }, withOldestSdk());
      expect(shown).toEqual(["a lock of the engine", "LEASE_NO_ANSWER"]);
    });

    it("has types that the packages' fit to", async () => {
      await writeFile(join(withOldestSdk(), "types.mts"), 'export type * from "@leasehold/client";\n');
      const options = { module: "nodenext", noEmit: true, skipLibCheck: false };
      expect(await compile(oldestTypeScript(), options, [join(withOldestSdk(), "types.mts")])).toEqual([]);
    });
  });
});
