import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** All temporary files of a run lie in one folder, which is removed after it: the CDK makes a folder for every app. */
export default function setup(): () => void {
  const usual = process.env.TMPDIR;
  const own = mkdtempSync(join(tmpdir(), "leasehold-unit-"));
  process.env.TMPDIR = own;
  return () => {
    if (usual === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = usual;
    rmSync(own, { recursive: true, force: true });
  };
}
