import { execFile } from "node:child_process";
import { cp, glob, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { describe, expect, it } from "vitest";
import { checkPublishing } from "../../tools/packaging/pack.ts";
import { prepare, publishedPackages } from "../../tools/packaging/prepare.ts";
import type { PackedProject } from "../support/packed.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const names = (await publishedPackages()).map((name) => `@leasehold/${name}`);

async function filesOf(folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob("**/*.*", { cwd: folder })) files.push(file);
  return [...files, "LICENSE"].sort();
}

/** What is in the archives, and what packing leaves in the repository. */
export function describePackedContents(packed: () => PackedProject): void {
  const archiveOf = async (name: string): Promise<Buffer> =>
    await readFile(packed().archives.get(name) as string);

  describe("the packages as they are published", () => {
    it("are those that are not private", () => {
      expect(names).toEqual(
        expect.arrayContaining([
          "@leasehold/client",
          "@leasehold/jobs",
          "@leasehold/middy",
          "@leasehold/cdk",
        ]),
      );
      expect(names).not.toContain("@leasehold/local");
      expect([...packed().archives.keys()].sort()).toEqual([...names].sort());
    });

    it.each(names)("%s has the licence and the changelog of the repository", async (name) => {
      const folder = packed().folderOf(name);
      for (const file of ["LICENSE", "CHANGELOG.md"])
        expect(await readFile(join(folder, file), "utf8")).toBe(await readFile(join(root, file), "utf8"));
    });

    it.each(names)(
      "%s has nothing of the repository's own: no condition for tests, no scripts",
      async (name) => {
        const text = await readFile(join(packed().folderOf(name), "package.json"), "utf8");
        expect(text).not.toContain("leasehold-source");
        expect(JSON.parse(text)).not.toHaveProperty("scripts");
        expect(JSON.parse(text)).not.toHaveProperty("devDependencies");
      },
    );

    it.each(names)("%s holds what its sources make, and nothing else", async (name) => {
      const folder = packed().folderOf(name);
      const files = await filesOf(folder);
      const expected = ["CHANGELOG.md", "LICENSE", "README.md", "dist/esm/package.json", "package.json"];
      for await (const file of glob("src/**/*.ts", { cwd: folder })) {
        const path = file.slice("src/".length, -".ts".length);
        expected.push(file, `dist/esm/${path}.js`, `dist/esm/${path}.js.map`);
        for (const ending of [".js", ".js.map", ".d.ts", ".d.ts.map"])
          expected.push(`dist/cjs/${path}${ending}`);
        if (name === "@leasehold/durable") expected.push(`dist/esm/${path}.d.ts`);
      }
      expect(files).toEqual(expected.sort());
    });

    it.each(names)("%s has maps that lead to its sources", async (name) => {
      const folder = packed().folderOf(name);
      let count = 0;
      for await (const file of glob("dist/**/*.map", { cwd: folder })) {
        const { sources } = JSON.parse(await readFile(join(folder, file), "utf8")) as { sources: string[] };
        expect(sources).toHaveLength(1);
        const source = join(folder, dirname(file), sources[0] as string);
        expect((await readFile(source, "utf8")).length, `${file}: ${source}`).toBeGreaterThan(0);
        count += 1;
      }
      expect(count).toBeGreaterThan(0);
    });

    it.each(names)("%s is clean for publint", async (name) => {
      const { buffer, byteOffset, byteLength } = await archiveOf(name);
      const tarball = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
      const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
      expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
    });

    it.each(names)("%s has types that are right under every resolution, for every entry", async (name) => {
      const result = await checkPackage(createPackageFromTarballData(new Uint8Array(await archiveOf(name))));
      if (result.types === false) throw new Error(`${name} has no types`);
      expect(result.problems).toEqual([]);
      const manifest = packed().manifests.find((each) => each.name === name);
      expect(Object.keys(result.entrypoints).sort()).toEqual(Object.keys(manifest?.exports ?? {}).sort());
      for (const [entry, { resolutions }] of Object.entries(result.entrypoints)) {
        expect(Object.keys(resolutions).sort()).toEqual(["bundler", "node10", "node16-cjs", "node16-esm"]);
        for (const [kind, { resolution }] of Object.entries(resolutions)) {
          const isFound = resolution?.isTypeScript === true || entry === "./package.json";
          expect(isFound, `${name} ${entry} under ${kind}`).toBe(true);
        }
      }
    });
  });

  it("npm would publish every package, and has nothing to warn of", async () => {
    const [archive = ""] = packed().archives.values();
    const published = await checkPublishing(dirname(archive));
    expect(published.map(({ name }) => name).sort()).toEqual([...names].sort());
    expect(published.flatMap(({ warnings }) => warnings)).toEqual([]);
  });

  it("are packed without what an older build has left", async () => {
    const copy = join(packed().folder, "copy");
    await cp(join(root, "packages/middy"), copy, {
      recursive: true,
      filter: (path) => !path.endsWith("node_modules"),
    });
    await writeFile(join(copy, "dist/cjs/removed-last-week.js"), "");
    await prepare(copy, "middy");
    expect(await filesOf(join(copy, "dist"))).not.toContain("cjs/removed-last-week.js");
  });

  it("are packed by the release alone: npm pack in a package's own folder is refused", async () => {
    const refused = run("npm", ["pack", "--dry-run"], { cwd: join(root, "packages/middy") });
    await expect(refused).rejects.toThrow("npm run release -- pack");
  });
}
