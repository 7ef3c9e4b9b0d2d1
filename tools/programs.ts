/** Every program behind an npm script that has several: `npm run evidence -- torture` runs `torture` of `evidence`. */

import { runOwn } from "./own-dependencies.ts";

export interface Program {
  /** One line for the list of them. */
  readonly what: string;
  /** Takes what stands behind its name; most read it from `process.argv`, as if they had been started alone. */
  readonly run: (argument?: string) => Promise<unknown>;
}

/** By the script and the name; a program without a name is what the script alone runs. */
export const programs: Readonly<Record<string, Readonly<Record<string, Program>>>> = {
  bench: {
    "": {
      what: "compares with other locks: 20 minutes; --quick: 1 minute; --write writes docs/benchmarks.md",
      run: () => import("./bench/peers/main.ts"),
    },
    costs: {
      what: "writes docs/costs.md, requests.md and scale.md: after a change of a state machine, an alarm, a schedule or a request",
      run: async () => (await import("./bench/costs/report.ts")).writeCosts(),
    },
    "stack-size": {
      what: "writes the table of docs/limits.md: after a change of what a job, a keeper or an alarm deploys",
      run: async () => (await import("./bench/stack-size.ts")).writeStackSizes(),
    },
  },
  docs: {
    "": {
      what: "builds the docs as a site, in tools/site/dist",
      run: () => runOwn("tools/site"),
    },
    dev: {
      what: "serves the site, and follows what is written in docs/",
      run: () => runOwn("tools/site", ["dev"]),
    },
  },
  evidence: {
    worlds: {
      what: "1,000 random worlds of the lock; --primitive tasks --seed 42 tells one of another: docs/evidence.md",
      run: () => import("../test/worlds/main.ts"),
    },
    explore: {
      what: "every course of small cases; --mistakes finds planted mistakes: docs/evidence.md",
      run: () => import("../test/exhaustive/main.ts"),
    },
    torture: {
      what: "a minute of killed, frozen and cut-off processes; --minutes 5 --seed 42: docs/evidence.md",
      run: () => import("../test/torture/main.ts"),
    },
    mutation: {
      what: "plants mistakes in the protocol and names those that no test sees; --only PATH: docs/evidence.md",
      run: () => runOwn("test/mutation"),
    },
    acceptance: {
      what: "a deployment's contracts, requests, job and workflow; here, on the local app: docs/deploy.md",
      run: () => import("../test/acceptance/main.ts"),
    },
    consumers: {
      what: "users' projects with the packed archives alone; a name for one; needs the network",
      run: () => import("../test/consumers/main.ts"),
    },
    "second-opinions": {
      what: "cfn-lint, moto, where Python is; a name for one; at first needs the network",
      run: () => import("../test/second-opinions/main.ts"),
    },
  },
  generate: {
    api: {
      what: "reports and an index of what users can import: after a change of a public declaration",
      run: async () => (await import("./packaging/api-report.ts")).writeApiReports(),
    },
    bundle: {
      what: "the handlers that the constructs bring: after a change in packages/cdk/wake or packages/cdk/history",
      run: async () => (await import("../packages/cdk/wake/bundle.ts")).writeBundles(),
    },
    "error-texts": {
      what: "what the command line says of an error's code: after a change of docs/errors.md",
      run: async () => (await import("./packaging/error-texts.ts")).writeErrorTexts(),
    },
    pictures: {
      what: "the docs' screenshots of the console; needs Chromium",
      run: () => import("./pictures/main.ts"),
    },
  },
  release: {
    version: {
      what: 'gives all packages a version, such as 1.0.0-rc.2, and the changelog\'s "Unreleased" too',
      run: async (version) => (await import("./packaging/release.ts")).version(version),
    },
    audit: {
      what: "origins, hashes, licences, scripts and versions of all packages; advisories: with --must-ask it fails without them",
      run: async (flag) => (await import("./packaging/release.ts")).audit(flag),
    },
    pack: {
      what: "the archives that would be published, and their hashes, in tarballs/ or another folder",
      run: async (folder) => (await import("./packaging/release.ts")).pack(folder),
    },
    "publish-check": {
      what: "all that npm does before it publishes the archives of a folder, or those of now",
      run: async (folder) => (await import("./packaging/release.ts")).publishCheck(folder),
    },
    sbom: {
      what: "the bill of materials of each package, in sbom/ or another folder",
      run: async (folder) => (await import("./packaging/release.ts")).sbom(folder),
    },
    python: {
      what: "the constructs' Python package, in python/ or another folder; needs Python with venv, and the network",
      run: async (folder) => (await import("./packaging/release.ts")).python(folder),
    },
    binary: {
      what: "the command line as one file that needs no Node, for this Linux, in binary/ or another folder; needs the network",
      run: async (folder) => (await import("./packaging/release.ts")).binary(folder),
    },
  },
};
