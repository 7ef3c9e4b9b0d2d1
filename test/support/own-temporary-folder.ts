// Each file of tests has a temporary folder of its own, which is removed after it: the CDK makes one below it for every app.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

const usual = process.env.TMPDIR;
const own = mkdtempSync(join(tmpdir(), "leasehold-unit-"));
process.env.TMPDIR = own;

afterAll(() => {
  if (usual === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = usual;
  rmSync(own, { recursive: true, force: true });
});
