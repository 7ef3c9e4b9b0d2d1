// What has to be right before anything is published: versions, what npm shows of a package, and what GitHub runs.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Manifest, publishedManifest, type RepositoryManifest } from "../../tools/packaging/manifest.ts";
import { publishedPackages } from "../../tools/packaging/prepare.ts";
import { versionProblems } from "../../tools/packaging/version.ts";
import { importedPackages, programsOf } from "../docs/programs.ts";

const root = join(import.meta.dirname, "../..");
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");
const manifestAt = (folder: string): Manifest =>
  JSON.parse(textOf(join(folder, "package.json"))) as Manifest & RepositoryManifest;
const repository = manifestAt(".") as unknown as RepositoryManifest & { readonly scripts: object };
const published = (await publishedPackages()).map((name) => [name, manifestAt(`packages/${name}`)] as const);

describe("a release", () => {
  it("has one version, of which the changelog says something", async () => {
    expect(await versionProblems()).toEqual([]);
  });
});

it("`npx @leasehold/cli dev` brings its engine, which `--omit=optional` leaves out", () => {
  const cli = published.find(([name]) => name === "cli")?.[1];
  const { version } = manifestAt("packages/engine");
  expect(cli).toMatchObject({ optionalDependencies: { "@leasehold/engine": version } });
  expect(cli?.peerDependencies).not.toHaveProperty("@leasehold/engine");
});

describe.each(published)("packages/%s", (name, manifest) => {
  it("says what npm shows of it", () => {
    expect(manifest).toMatchObject({
      name: `@leasehold/${name}`,
      description: expect.stringMatching(/\w{3,}/),
      license: "MIT",
      engines: { node: ">=22" },
    });
    expect(manifest.keywords).toEqual(expect.arrayContaining(["aws", "dynamodb", "distributed-lock"]));
    expect(textOf(`packages/${name}/README.md`)).toMatch(new RegExp(`^# @leasehold/${name}\n\n.+`));
  });

  it("leads from its page on npm to pages that are there", () => {
    const readme = textOf(`packages/${name}/README.md`);
    const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, link = ""]) => link);
    // Npm shows the page away from the repository: only whole addresses work there.
    expect(links.filter((link) => !link.startsWith("https://"))).toEqual([]);
    const own = links.filter((link) => link.includes("/leasehold/blob/main/"));
    expect(own.length).toBeGreaterThan(1);
    for (const link of own)
      expect(existsSync(join(root, link.split(/\/main\/|#/)[1] ?? "")), link).toBe(true);
  });

  it("installs what the examples of its page import", () => {
    const page = `packages/${name}/README.md`;
    const commands = [...textOf(page).matchAll(/^npm install (.*)$/gm)];
    const installed = commands.flatMap(([, names = ""]) => names.split(" "));
    for (const each of importedPackages(programsOf(page))) {
      // Of a package that is not there, its types are.
      expect(
        [each, `@types/${each}`].some((possible) => installed.includes(possible)),
        each,
      ).toBe(true);
    }
  });

  it("is public, with its provenance, its source and its issues", () => {
    expect(publishedManifest(manifest, repository, `packages/${name}`)).toMatchObject({
      publishConfig: { access: "public", provenance: true },
      repository: { url: "git+https://github.com/leasehold/leasehold.git", directory: `packages/${name}` },
      homepage: expect.stringMatching(/^https:/),
      bugs: expect.stringMatching(/^https:/),
      author: expect.stringMatching(/\w/),
    });
  });

  it.each([
    ["1.2.3-rc.1", "next"],
    ["1.2.3", "latest"],
  ])("in the version %s has the tag %s: npm gives candidates to those alone who ask", (version, tag) => {
    const { publishConfig } = publishedManifest({ ...manifest, version }, repository, `packages/${name}`);
    expect(publishConfig).toMatchObject({ tag });
  });

  it("brings no types of other packages with it at run time, and pins what it brings", () => {
    const dependencies = Object.entries((manifest.dependencies ?? {}) as Record<string, string>);
    expect(
      dependencies.map(([dependency]) => dependency).filter((each) => each.startsWith("@types/")),
    ).toEqual([]);
    for (const [dependency, range] of dependencies) expect(range, dependency).toMatch(/^\d+\.\d+\.\d+/);
  });
});

interface Workflow {
  readonly permissions: unknown;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly "timeout-minutes"?: number;
        readonly permissions?: Readonly<Record<string, string>>;
        readonly steps: readonly { uses?: string; run?: string; with?: Readonly<Record<string, string>> }[];
      }
    >
  >;
}

describe.each(globSync(".github/workflows/*.yml", { cwd: root }))("%s", (file) => {
  const { permissions, jobs } = parse(textOf(file)) as Workflow;
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it("may only read, but for the jobs that say otherwise", () => {
    expect(permissions).toEqual({ contents: "read" });
  });

  it("runs neither the repository's code nor install scripts where it may write or sign", () => {
    for (const [name, job] of Object.entries(jobs)) {
      if (!Object.values(job.permissions ?? {}).includes("write")) continue;
      const actions = job.steps.flatMap(({ uses }) => uses?.split("@")[0] ?? []);
      const harmless = ["actions/setup-node", "actions/download-artifact", "actions/deploy-pages"];
      expect(harmless, name).toEqual(expect.arrayContaining(actions));
      const commands = job.steps.flatMap(({ run = "" }) => run.split("\n"));
      for (const command of commands.filter((one) => /\b(npm|npx|node|tsx)\b/.test(one))) {
        expect(command, name).toMatch(/^ *npm (publish|install) .*--ignore-scripts/);
      }
      const { "node-version": node, cache } = job.steps.find((one) => one.with?.["node-version"])?.with ?? {};
      expect([node ?? textOf(".nvmrc").trim(), cache], name).toEqual([textOf(".nvmrc").trim(), undefined]);
    }
  });

  it("uses actions at one commit each, with the version beside it", () => {
    for (const [, action = ""] of textOf(file).matchAll(/uses: (.+)/g)) {
      expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    }
    expect(steps.some(({ uses }) => uses?.startsWith("actions/checkout@"))).toBe(true);
  });
});

describe("the release", () => {
  const { jobs } = parse(textOf(".github/workflows/release.yml")) as Workflow;
  const may = Object.entries(jobs).filter(([, { permissions = {} }]) => permissions["id-token"] === "write");

  it("publishes in one job, with provenance, the archives whose hashes the tests' job has given", () => {
    expect(may.map(([name]) => name)).toEqual(["publish"]);
    const commands = jobs.publish?.steps.map(({ run = "" }) => run).join("\n") ?? "";
    expect(commands).toMatch(/"\$SUMS" \| sha256sum --check --strict\n(.|\n)*npm publish/);
    expect(commands).toMatch(/npm publish "\.\/tarballs\/\$archive" --ignore-scripts --provenance/);
    const tested = jobs.test?.steps.map(({ run = "" }) => run) ?? [];
    expect(tested.indexOf("npm run release -- pack")).toBeLessThan(
      tested.indexOf("npm run release -- publish-check tarballs"),
    );
  });
});

it("the repository's Node is the one that .nvmrc names", () => {
  const { devDependencies } = repository as unknown as {
    readonly devDependencies: { readonly node: string };
  };
  expect(textOf(".nvmrc").trim()).toBe(devDependencies.node);
});
