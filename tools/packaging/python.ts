/**
 * The constructs for Python, from the sources that everybody has: jsii compiles them once more and describes their API, and
 * jsii-pacmak wraps both as a wheel. It holds the client too, since pip installs nothing of npm's.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtempDisposable, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { installOwn } from "../own-dependencies.ts";
import { build, copyPrepared } from "./pack.ts";
import { repositoryFolder } from "./prepare.ts";

const run = promisify(execFile);
const modules = join(repositoryFolder, "node_modules");
/** jsii and jsii-pacmak. */
const own = "tools/packaging/jsii";
const client = "@leasehold/client";

type Json = Readonly<Record<string, unknown>>;

/** What jsii wants in a manifest beside what is published. */
const ofJsii: Json = {
  bundleDependencies: [client],
  files: [".jsii", "dist/cjs", "LICENSE"],
  stability: "stable",
  jsii: {
    outdir: "dist/jsii",
    tsconfig: "tsconfig.json",
    // The other sets of rules allow jsii's own options alone.
    validateTsconfig: "minimal",
    targets: { python: { distName: "leasehold-cdk", module: "leasehold.cdk" } },
  },
};

/** The options of the packages' CommonJS; jsii checks the types again, with a TypeScript of its own. */
const compiler: Json = {
  extends: join(repositoryFolder, "packages/tsconfig.base.json"),
  compilerOptions: {
    module: "commonjs",
    moduleResolution: "bundler",
    verbatimModuleSyntax: false,
    isolatedModules: true,
    rootDir: "src",
    outDir: "dist/cjs",
  },
  include: ["src"],
};

/** Names that are words of Python or C#, where jsii changes them: `lambda` is `lambda_` there. */
const allowed = "reserved-word";

/** Runs a command of a package in a folder; rejects with all that it has printed. */
async function runBin(name: string, args: readonly string[], cwd: string): Promise<void> {
  const bin = join(repositoryFolder, own, "node_modules", name, "bin", name);
  await run(process.execPath, [bin, ...args], { cwd, maxBuffer: 2 ** 26 }).catch((error: unknown) => {
    const { stdout = "", stderr = "" } = error as { readonly stdout?: string; readonly stderr?: string };
    throw new Error(`${name} failed:\n${stdout}${stderr}`, { cause: error });
  });
}

async function changeJson(file: string, change: (json: Json) => Json): Promise<void> {
  await writeFile(file, JSON.stringify(change(JSON.parse(await readFile(file, "utf8")) as Json)));
}

/**
 * Makes the constructs a module of jsii, in a folder. Rejects where a public declaration is one that other languages cannot
 * express, with the place of each.
 */
export async function assemble(folder: string): Promise<void> {
  await installOwn(own);
  await build();
  await copyPrepared("cdk", folder);
  await rm(join(folder, "dist"), { recursive: true });
  await changeJson(join(folder, "package.json"), ({ author, peerDependencies, ...kept }) => ({
    ...kept,
    ...ofJsii,
    author: { name: author, organization: true },
    peerDependencies,
    devDependencies: oldestOf(peerDependencies as Readonly<Record<string, string>>),
  }));
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(compiler));
  const copied = join(folder, "node_modules", client);
  await copyPrepared("client", copied);
  await changeJson(join(copied, "package.json"), (manifest) => ({ ...manifest, files: ["dist/cjs"] }));
  for (const name of ["aws-cdk-lib", "constructs", "@types"]) {
    await symlink(join(modules, name), join(folder, "node_modules", name), "junction");
  }
  await runBin("jsii", ["--silence-warnings", allowed, "--fail-on-warnings"], folder);
}

/** The oldest versions of ranges such as `^2.1.0`, which jsii wants to be named as the ones that are compiled with. */
function oldestOf(ranges: Readonly<Record<string, string>>): Json {
  return Object.fromEntries(Object.entries(ranges).map(([name, range]) => [name, range.replace(/^\^/, "")]));
}

/** Makes the wheel, and gives its path. It needs Python with venv, and the network. */
export async function packPython(destination: string): Promise<string> {
  await using work = await mkdtempDisposable(join(tmpdir(), "leasehold-python-"));
  const folder = join(work.path, "cdk");
  await assemble(folder);
  await runBin("jsii-pacmak", ["--target", "python"], folder);
  const made = join(folder, "dist/jsii/python");
  const wheel = (await readdir(made)).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) throw new Error("jsii-pacmak made no wheel");
  await mkdir(destination, { recursive: true });
  const path = join(destination, wheel);
  await cp(join(made, wheel), path);
  return path;
}
