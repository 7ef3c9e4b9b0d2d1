/**
 * The command line as one file that needs no Node: Node's own executable with the bundled command inside, which Node calls a
 * single executable application. For the system and the processor on which it is made.
 */
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtempDisposable, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { installOwn } from "../own-dependencies.ts";
import { repositoryFolder } from "./prepare.ts";

const run = promisify(execFile);
/** postject, and Node as it is published for Linux. */
const own = join(repositoryFolder, "tools/packaging/binary/node_modules");
const node = join(own, `node-linux-${process.arch}`);
/** Node looks for this text in itself, to know whether something was put into it. */
const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

/** Writes `leasehold`, and the licences of all that is in it, into a folder. Gives the program's path. */
export async function makeBinary(folder: string): Promise<string> {
  if (process.platform !== "linux")
    throw new Error(
      `the binary is made on Linux; other systems (this is ${process.platform}) are not tested`,
    );
  await installOwn("tools/packaging/binary");
  await mkdir(folder, { recursive: true });
  await using parts = await mkdtempDisposable(join(tmpdir(), "leasehold-binary-"));
  const temporary = parts.path;
  const main = join(temporary, "leasehold.cjs");
  const output = join(temporary, "leasehold.blob");
  const packages = await bundle(main);
  const settings = join(temporary, "settings.json");
  await writeFile(
    settings,
    JSON.stringify({ main, output, disableExperimentalSEAWarning: true, useCodeCache: true }),
  );
  const executable = join(node, "bin/node");
  await run(executable, ["--experimental-sea-config", settings]);
  const made = join(temporary, "leasehold");
  await copyFile(executable, made);
  await run(executable, [
    join(own, "postject/dist/cli.js"),
    made,
    "NODE_SEA_BLOB",
    output,
    "--sentinel-fuse",
    fuse,
  ]);
  await chmod(made, 0o755);
  await run(made, ["--version"]);
  await writeFile(join(folder, "LICENSES.txt"), await licences(packages));
  const program = join(folder, "leasehold");
  await copyFile(made, program);
  return program;
}

/** Bundles the command into one file, and gives the folders of the packages that are in it. */
async function bundle(outfile: string): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: repositoryFolder,
    entryPoints: ["packages/cli/src/main.ts"],
    outfile,
    metafile: true,
    bundle: true,
    minify: true,
    keepNames: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    conditions: ["leasehold-source"],
    mainFields: ["module", "main"],
    // It needs Java, or a program of its own: a project that has it installed is asked.
    external: ["@leasehold/engine"],
    supported: { "dynamic-import": false },
    // Node's own `require` finds nothing but Node's modules there.
    banner: { js: 'require = require("node:module").createRequire(__filename);' },
  });
  const folders = Object.keys(metafile.inputs).flatMap(
    (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
  );
  return [...new Set(folders)].sort();
}

/** The licences of the packages, of this repository and of Node. */
async function licences(packages: readonly string[]): Promise<string> {
  const folders = [repositoryFolder, node, ...packages.map((folder) => join(repositoryFolder, folder))];
  const texts = folders.map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
      readonly [field in "name" | "version" | "license"]?: string;
    };
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    const text = file === undefined ? "" : await readFile(join(folder, file), "utf8");
    return `${name} ${version} (${license})\n\n${text}`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(72)}\n`);
}
