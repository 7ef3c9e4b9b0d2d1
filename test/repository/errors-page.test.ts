/** docs/errors.md has a section for each code, and none for any other; every error has the address of its section. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as client from "@leasehold/client";
import { LeaseError, type LeaseErrorCode } from "@leasehold/client";
import * as fair from "@leasehold/client/fair";
import * as group from "@leasehold/client/group";
import * as readWrite from "@leasehold/client/read-write";
import * as singleFlight from "@leasehold/client/single-flight";
import * as jobs from "@leasehold/jobs";
import * as middy from "@leasehold/middy";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** By code, what the page says. */
const sections = new Map(
  read("docs/errors.md")
    .split(/^(?=##+ )/m)
    .map((section) => [section.match(/^### (\w+)$/m)?.[1], section] as const)
    .filter((entry): entry is [string, string] => entry[0] !== undefined),
);

/** The codes of the type, which has no values at run time. */
const [, union = ""] =
  read("packages/client/src/base/errors.ts").match(/type LeaseErrorCode =([^;]*);/) ?? [];
const codes = [...union.matchAll(/"(\w+)"/g)].map(([, code]) => code as LeaseErrorCode);

const entries = { client, fair, group, readWrite, singleFlight, jobs, middy };
const classes = Object.values(entries)
  .flatMap((entry) => Object.entries(entry))
  .filter(([, value]) => typeof value === "function" && value.prototype instanceof LeaseError)
  .map(([name]) => name);

describe("the page of errors", () => {
  it("has a section for each code, and no other", () => {
    expect(codes.length).toBeGreaterThan(25);
    expect([...sections.keys()].sort()).toEqual([...codes].sort());
  });

  it("knows every code that the sources use", () => {
    const sources = globSync("packages/*/src/**/*.ts", { cwd: root });
    const used = sources.flatMap((path) => [...read(path).matchAll(/"((?:LEASE|INVALID)_[A-Z_]+)"/g)]);
    expect(new Set(used.map(([, code]) => code))).toEqual(new Set(codes));
  });

  it.each(codes)("says of %s what it means, when it comes and what to do", (code) => {
    const section = sections.get(code) ?? "";
    for (const part of ["**Means:**", "**When:**", "**Do:**"]) expect(section).toContain(part);
  });

  it("names every class of errors, and no other", () => {
    const named = [...sections.values()].flatMap((section) =>
      [...(section.split("\n\n")[1] ?? "").matchAll(/`(\w+Error)`/g)].map(([, name]) => name),
    );
    expect(new Set(named)).toEqual(new Set(classes));
  });
});

describe("the address of an error's section", () => {
  it.each(codes)("is on the page under the repository's homepage: %s", (code) => {
    const { homepage } = JSON.parse(read("package.json"));
    const { docs } = new LeaseError(code, "m");
    expect(docs).toBe(`${homepage.replace("#readme", "")}/blob/main/docs/errors.md#${code.toLowerCase()}`);
  });

  it("is shown where an error ends the program, with its code", async () => {
    const { inspect } = await import("node:util");
    const shown = inspect(new client.LeaseLostError("k", "taken"));
    expect(shown).toContain("code: 'LEASE_LOST'");
    expect(shown).toContain("/docs/errors.md#lease_lost'");
  });
});
