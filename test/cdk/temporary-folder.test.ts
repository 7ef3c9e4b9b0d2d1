import { tmpdir } from "node:os";
import { basename, dirname } from "node:path";
import { App } from "aws-cdk-lib";
import { expect, test } from "vitest";

test("what an app writes lies in the temporary folder of the run, which is removed", () => {
  expect(basename(tmpdir())).toMatch(/^leasehold-unit-/);
  expect(dirname(new App().outdir)).toBe(tmpdir());
});
