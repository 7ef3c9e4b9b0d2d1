// @module-tag long
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { checkPublishing } from "../../tools/packaging/pack.ts";
import { publishedPackages } from "../../tools/packaging/prepare.ts";

it("npm would publish every package, and has nothing to warn of", async () => {
  const names = (await publishedPackages()).map((name) => `@leasehold/${name}`);
  const { TARBALLS: packed } = process.env;
  expect(await checkPublishing(packed && resolve(packed))).toEqual(
    names.map((name) => ({ name, warnings: [] })),
  );
});
