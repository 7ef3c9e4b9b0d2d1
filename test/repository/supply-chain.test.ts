// What the repository installs and brings to its users: the checks find what is planted, and nothing in the real lock file.
import { describe, expect, it } from "vitest";
import {
  auditProblems,
  lockfile,
  originProblems,
  pinProblems,
  productionProblems,
  sorted,
} from "../../tools/packaging/audit.ts";
import { type LockedPackage, type Lockfile, productionClosure } from "../../tools/packaging/lockfile.ts";
import { publishedPackages } from "../../tools/packaging/prepare.ts";
import { billOf, lockfileOf } from "../../tools/packaging/sbom.ts";

const integrity = `sha512-${"a".repeat(86)}==`;
const good: LockedPackage = { version: "1.0.0", integrity, license: "MIT" };

/** A workspace that depends on `kept`, which brings `inner`, and that is developed with `tool`. */
function planted(changed: Readonly<Record<string, Partial<LockedPackage>>> = {}): Lockfile {
  const packages: Record<string, LockedPackage> = {
    "": { name: "root" },
    "packages/own": {
      name: "@x/own",
      version: "1.0.0",
      license: "MIT",
      dependencies: { kept: "1.0.0", "@x/two": "1.0.0" },
    },
    "packages/two": {
      name: "@x/two",
      version: "1.0.0",
      license: "MIT",
      optionalDependencies: { binary: "1.0.0" },
    },
    "node_modules/@x/two": { resolved: "packages/two", link: true },
    "node_modules/kept": { ...good, dependencies: { inner: "^1.0.0" } },
    "node_modules/inner": { ...good, version: "2.0.0" },
    "node_modules/kept/node_modules/inner": good,
    "node_modules/binary": good,
    "node_modules/tool": { ...good, license: "GPL-3.0-only", hasInstallScript: true },
  };
  for (const [folder, change] of Object.entries(changed))
    packages[folder] = { ...packages[folder], ...change };
  return { lockfileVersion: 3, packages };
}

const inner = "node_modules/kept/node_modules/inner";

describe("the repository", () => {
  it("installs packages of the public registry alone, each with its hash and one version, and brings none with a script or another licence", async () => {
    expect(await auditProblems()).toEqual([]);
  });

  it("brings its users the AWS SDK with the command line, though it is developed with it too, and nothing with the client", async () => {
    const closure = productionClosure(await lockfile(), "packages/cli");
    expect(closure).toEqual(
      expect.arrayContaining(["node_modules/@aws-sdk/client-dynamodb", "packages/client", "packages/jobs"]),
    );
    expect(productionClosure(await lockfile(), "packages/client")).toEqual([]);
  });
});

describe("a planted lock file", () => {
  it("with nothing wrong passes", () => {
    expect(originProblems(planted())).toEqual([]);
    expect(productionProblems(planted(), ["packages/own"])).toEqual([]);
  });

  it.each<[string, Lockfile, RegExp]>([
    ["of an older version", { ...planted(), lockfileVersion: 2 }, /version 2/],
    [
      "with an archive from elsewhere",
      planted({ [inner]: { resolved: "https://example.com/inner.tgz" } }),
      /inner comes from https:\/\/example/,
    ],
    [
      "with the registry's name as a beginning",
      planted({ [inner]: { resolved: "https://registry.npmjs.org.example.com/x" } }),
      /comes from/,
    ],
    [
      "with a package from git",
      planted({ [inner]: { resolved: "git+ssh://git@example.com/x.git#0" } }),
      /comes from git/,
    ],
    ["without a hash", planted({ [inner]: { integrity: "" } }), /no SHA-512/],
    [
      "with a weak hash",
      planted({ [inner]: { integrity: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=" } }),
      /no SHA-512/,
    ],
    [
      "with a tool's archive from elsewhere",
      planted({ "node_modules/tool": { resolved: "file:../tool.tgz" } }),
      /tool comes from file/,
    ],
  ])("%s is found", (_name, wrong, problem) => {
    expect(originProblems(wrong)).toEqual([expect.stringMatching(problem)]);
  });

  it.each<[string, Partial<LockedPackage>, RegExp]>([
    ["a licence that binds its users", { license: "GPL-3.0-only" }, /licence GPL-3.0-only/],
    ["several licences that all apply", { license: "MIT AND GPL-3.0-only" }, /MIT AND GPL/],
    ["no licence", { license: "UNLICENSED" }, /UNLICENSED/],
    ["a script that runs at the install", { hasInstallScript: true }, /runs a script/],
  ])("with %s in what users get is found", (_name, change, problem) => {
    const wrong = planted({ [inner]: change });
    expect(productionProblems(wrong, ["packages/own"])).toEqual([expect.stringMatching(problem)]);
  });

  it("with a choice of licences passes if users may choose one that is allowed", () => {
    const choice = planted({ [inner]: { license: "(MIT OR GPL-3.0-or-later)" } });
    expect(productionProblems(choice, ["packages/own"])).toEqual([]);
  });
});

describe("a manifest", () => {
  it.each([
    "^1.0.0",
    "~1.0.0",
    "1.x",
    "*",
    "latest",
    ">=1.0.0",
    "github:x/y",
    "file:../y",
    "npm:y@^1.0.0",
    "",
  ])("that asks for %j is found", (version) => {
    expect(pinProblems("package.json", { devDependencies: { y: version } })).toHaveLength(1);
    expect(pinProblems("package.json", { optionalDependencies: { y: version } })).toHaveLength(1);
  });

  it("that asks for one version passes, by an alias too", () => {
    const dependencies = { x: "1.0.0", y: "1.0.0-rc.1", z: "npm:@x/y@1.0.0" };
    expect(pinProblems("package.json", { dependencies })).toEqual([]);
  });
});

describe("the registry's advisories", () => {
  const production = new Set(["node_modules/kept"]);

  it("are about users or about developers, by where the weak package is", () => {
    const vulnerabilities = {
      kept: { severity: "high", nodes: ["node_modules/kept"] },
      tool: { severity: "low", nodes: ["node_modules/tool"] },
    };
    expect(sorted(JSON.stringify({ vulnerabilities }), production)).toEqual({
      production: ["kept: high"],
      development: ["tool: low"],
    });
  });

  it.each([JSON.stringify({ message: "405 Method Not Allowed", error: {} }), ""])(
    "are never taken for none where the registry did not answer: %j",
    (report) => {
      expect(sorted(report, production)).toEqual({ notAsked: expect.stringMatching(/405|nothing/) });
    },
  );
});

describe("the bill of materials", { tags: ["long"] }, () => {
  it("of each package names the package, all that users get with it, and a hash of each archive", async () => {
    const locked = await lockfile();
    for (const name of await publishedPackages()) {
      const folder = `packages/${name}`;
      const bill = JSON.parse(await billOf(lockfileOf(locked, folder))) as {
        metadata: { component: { name: string; version: string } };
        components: { name: string; version: string; hashes?: object[]; licenses?: object[] }[];
      };
      expect(bill.metadata.component).toMatchObject({
        name: `@leasehold/${name}`,
        version: locked.packages[folder]?.version,
      });
      const brought = productionClosure(locked, folder).map((path) =>
        path.replace(/^(packages|.*node_modules)\//, ""),
      );
      expect(bill.components.map((each) => each.name.replace("@leasehold/", "")).sort()).toEqual(
        brought.sort(),
      );
      for (const { name: component, hashes, licenses } of bill.components) {
        expect(licenses, component).not.toHaveLength(0);
        if (!component.startsWith("@leasehold/")) expect(hashes, component).toHaveLength(1);
      }
    }
  });
});
