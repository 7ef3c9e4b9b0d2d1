import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const modules = join(root, "node_modules");
const program = join(import.meta.dirname, "fixtures/packed/program.ts");
const published = ["client", "middy", "cdk"] as const;
/** What the program itself needs, beside the packages and what those ask for. */
const ownDependencies = ["@middy/core", "@types/aws-lambda", "@types/node", "undici-types"];

/** As much of a packed manifest as its users see. */
interface Manifest {
  readonly name: string;
  readonly engines: { readonly node: string };
  readonly exports: Record<string, Record<string, string>>;
  readonly dependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

let folder: string;
let manifests: Manifest[];
/** What the compiler has to say of the program. */
let complaints: readonly string[];

/** The binary of the oldest Node that the packages support; it lies apart, so that it hides no other `node`. */
function oldestNode(): string {
  const from = createRequire(join(root, "test/oldest-node/package.json"));
  return join(dirname(from.resolve("node/package.json")), "bin/node");
}

/** Puts a package into the folder as `npm pack` makes it: what is not in `files` is not there. */
async function installPacked(name: string): Promise<Manifest> {
  await run("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: join(root, "packages", name) });
  const target = join(folder, "node_modules/@leasehold", name);
  await mkdir(target, { recursive: true });
  const archive = join(folder, `leasehold-${name}-0.1.0.tgz`);
  await run("tar", ["-xzf", archive, "-C", target, "--strip-components=1"]);
  return JSON.parse(await readFile(join(target, "package.json"), "utf8"));
}

/** Links a dependency from the repository, so that nothing is downloaded. */
async function link(name: string): Promise<void> {
  const path = join(folder, "node_modules", name);
  await mkdir(dirname(path), { recursive: true });
  await symlink(join(modules, name), path);
}

beforeAll(async () => {
  await run("tsc", ["-b", ...published.map((name) => `packages/${name}`)], { cwd: root });
  folder = await mkdtemp(join(tmpdir(), "leasehold-packed-"));
  manifests = await Promise.all(published.map(installPacked));
  const needed = manifests.flatMap(({ dependencies, peerDependencies }) =>
    Object.keys({ ...dependencies, ...peerDependencies }),
  );
  const links = new Set([...needed.filter((name) => !name.startsWith("@leasehold/")), ...ownDependencies]);
  await Promise.all([...links].map(link));
  await cp(program, join(folder, "program.ts"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  // What users have: no condition of ours, and declarations that have to stand for themselves.
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022", "esnext.disposable"],
    module: "nodenext",
    strict: true,
    skipLibCheck: false,
    types: ["node"],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  const output = await run("tsc", ["-p", "."], { cwd: folder }).then(
    () => "",
    (error: { stdout?: string; message: string }) => error.stdout || error.message,
  );
  complaints = output.split("\n").filter((line) => line !== "");
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe("the packages as they are published", () => {
  it("name files that are in them, for every entry point", async () => {
    for (const { name, exports } of manifests) {
      for (const [entry, conditions] of Object.entries(exports)) {
        for (const file of Object.values(conditions)) {
          const path = join(folder, "node_modules", name, file);
          expect((await readFile(path, "utf8")).length, `${name} ${entry}`).toBeGreaterThan(0);
        }
      }
    }
  });

  it("support the oldest Node that they are proved on", async () => {
    const { stdout } = await run(oldestNode(), ["--version"]);
    expect(manifests.map(({ engines }) => engines.node)).toEqual(published.map(() => ">=22"));
    expect(stdout.trim()).toBe("v22.0.0");
  });

  it("have declarations that a strict program compiles against", () => {
    // Middy's own declarations name a package that is optional.
    expect(complaints.filter((line) => !line.includes("node_modules/@middy/core/"))).toEqual([]);
  });

  it.concurrent.each([
    ["the oldest Node", oldestNode],
    ["the newest", () => process.execPath],
  ])("do what they promise on %s", async (_name, node) => {
    const entryPoints = manifests.flatMap(({ name, exports }) =>
      Object.keys(exports).map((entry) => join(name, entry)),
    );
    const { clientConfig } = inject("engine");
    const tableName = `leases-${crypto.randomUUID()}`;
    const config = JSON.stringify({ tableName, clientConfig, entryPoints });
    const { stdout, stderr } = await run(node(), [join(folder, "program.js"), config]);
    expect(stderr).toBe("");
    const { shown } = JSON.parse(stdout) as { readonly shown: readonly string[] };
    expect(shown).toContain("heartbeats keep leases over more than two of their lengths");
    expect(shown).toHaveLength(17);
  });
});
