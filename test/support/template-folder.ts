/** Before a test file, where templates are kept: those that cfn-lint judges lie apart from what other tests synthesize. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, inject } from "vitest";

const isJudged = /[\\/]test[\\/](cdk|infra)[\\/]/.test(expect.getState().testPath ?? "");
const folder = join(inject("temporaryFolder"), isJudged ? "kept" : "others");
mkdirSync(folder, { recursive: true });
process.env.TMPDIR = folder;
