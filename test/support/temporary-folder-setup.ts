import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** The folder of all that the run's tests leave; it is gone at the end. */
    temporaryFolder: string;
  }
}

/**
 * All temporary files of a run lie in one folder, which is removed after it: the CDK makes a folder for every app.
 * LEASEHOLD_KEPT_TEMPLATES names a folder that gets the templates of test/cdk and test/infra; see template-folder.ts.
 */
export default function setup(project: TestProject): () => void {
  const usual = process.env.TMPDIR;
  const own = mkdtempSync(join(tmpdir(), "leasehold-unit-"));
  process.env.TMPDIR = own;
  project.provide("temporaryFolder", own);
  return () => {
    if (usual === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = usual;
    const kept = process.env.LEASEHOLD_KEPT_TEMPLATES;
    if (kept !== undefined) keepTemplates(join(own, "kept"), kept);
    rmSync(own, { recursive: true, force: true });
  };
}

/** Copies each template once, whatever number of apps has synthesized it; one without resources is none to AWS. */
function keepTemplates(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const path of globSync("**/*.template.json", { cwd: from })) {
    const text = readFileSync(join(from, path));
    if (!text.includes('"Resources":')) continue;
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 12);
    writeFileSync(join(to, `${hash}.template.json`), text);
  }
}
