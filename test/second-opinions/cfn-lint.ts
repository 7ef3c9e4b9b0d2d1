/**
 * cfn-lint over every template that test/infra and test/cdk synthesize. LEASEHOLD_KEPT_TEMPLATES names the folder that has
 * them, where those tests have run before.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PythonTools } from "./python.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const lintedAtATime = 16;

/** Rules of cfn-lint that say nothing here. */
const ignoredRules: Readonly<Record<string, string>> = {
  W3005: "a dependency that a reference implies already: the CDK writes it beside that on a role's policy",
};

/** Tells whether nothing was found. */
export async function lintTemplates(tools: PythonTools): Promise<boolean> {
  const folder = process.env.LEASEHOLD_KEPT_TEMPLATES ?? (await synthesized());
  const templates = (await readdir(folder)).map((name) => join(folder, name));
  if (templates.length === 0) {
    console.log(`cfn-lint: there is no template in ${folder}`);
    return false;
  }
  const findings: string[] = [];
  const lintNext = async (): Promise<void> => {
    for (let some = templates.splice(0, lintedAtATime); some.length > 0; ) {
      findings.push(...(await lint(tools, some)));
      some = templates.splice(0, lintedAtATime);
    }
  };
  const count = templates.length;
  await Promise.all(Array.from({ length: availableParallelism() }, lintNext));
  for (const finding of findings) console.log(finding);
  console.log(`cfn-lint: ${count} templates, ${findings.length === 0 ? "nothing found" : "see above"}`);
  return findings.length === 0;
}

/** Runs the tests that synthesize templates, and gives the folder that has those. */
async function synthesized(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "templates-"));
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = [vitest, "run", "--project=unit", "--reporter=dot", "test/infra", "test/cdk"];
  const synthesis = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, LEASEHOLD_KEPT_TEMPLATES: folder },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [code] = (await once(synthesis, "close")) as [number | null];
  if (code !== 0) throw new Error(`the tests that synthesize templates ended with ${code}`);
  return folder;
}

async function lint({ python, programs }: PythonTools, templates: readonly string[]): Promise<string[]> {
  const ignored = Object.keys(ignoredRules).flatMap((rule) => ["--ignore-checks", rule]);
  const cfnLint = [python, join(programs, "cfn-lint"), "--format", "parseable", ...ignored];
  try {
    // It has no clock, and what runs beside it may have one.
    await run("nice", [...cfnLint, "--", ...templates]);
    return [];
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { readonly stdout?: string; readonly stderr?: string };
    const said = `${stdout}${stderr}`.trim();
    return said === "" ? [String(error)] : said.split("\n");
  }
}
