/**
 * What tools by others say of the templates, where this machine has Python. The first time it needs the network, for them.
 *
 *     npm run second-opinions
 *     npm run second-opinions -- moto
 *
 * Ends with 1 where a tool finds something, and says by name what was skipped, and why.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { checkOnMoto } from "./moto.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const requirements = join(import.meta.dirname, "requirements.txt");
const python = join(root, "node_modules/.cache/second-opinions");
const lintedAtATime = 16;

/** Rules of cfn-lint that say nothing here. */
const ignoredRules: Readonly<Record<string, string>> = {
  W3005: "a dependency that a reference implies already: the CDK writes it beside that on a role's policy",
};

/** Each tells whether its tool has found nothing. */
const opinions: Readonly<Record<string, () => Promise<boolean>>> = {
  "cfn-lint": lintTemplates,
  moto: () => checkOnMoto(join(python, "bin/python")),
};
const known = Object.keys(opinions);
const asked = process.argv.length > 2 ? process.argv.slice(2) : known;
const unknown = asked.find((name) => !known.includes(name));
if (unknown !== undefined) throw new Error(`there is no tool ${unknown}; allowed: ${known.join(", ")}`);
const missing = await installed();
for (const name of asked) {
  if (missing !== undefined) console.log(`${name}: skipped, for ${missing}`);
  else if (!(await opinions[name]?.())) process.exitCode = 1;
}

/** Installs the pinned tools in an environment of their own; gives the reason where that cannot be. */
async function installed(): Promise<string | undefined> {
  try {
    await run("python3", ["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"]);
  } catch {
    return "Python 3.11 or newer, with venv, is not installed"; // Ignored: what it lacks is said to the caller.
  }
  try {
    if (!existsSync(join(python, "bin/pip"))) {
      await mkdir(join(python, ".."), { recursive: true });
      await run("python3", ["-m", "venv", python]);
    }
    const quietly = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries=1"];
    await run(join(python, "bin/pip"), ["install", ...quietly, "-r", requirements], { timeout: 240_000 });
    return undefined;
  } catch (error) {
    console.log(String((error as { readonly stderr?: unknown }).stderr ?? error).trim());
    return "it could not be installed"; // Ignored: the machine may be offline.
  }
}

/** Lints every template that test/infra synthesizes; tells whether nothing was found. */
async function lintTemplates(): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-templates-"));
  try {
    const vitest = [
      join(root, "node_modules/vitest/vitest.mjs"),
      ...["run", "--project=unit", "--reporter=dot", "test/infra"],
    ];
    const env = { ...process.env, LEASEHOLD_KEPT_TEMPLATES: folder };
    const synthesis = spawn(process.execPath, vitest, {
      cwd: root,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const [code] = (await once(synthesis, "close")) as [number | null];
    const templates = (await readdir(folder)).map((name) => join(folder, name));
    if (code !== 0 || templates.length === 0) {
      console.log(
        `cfn-lint: the tests that synthesize templates ended with ${code}, and kept ${templates.length}`,
      );
      return false;
    }
    const findings: string[] = [];
    const lintNext = async (): Promise<void> => {
      for (let some = templates.splice(0, lintedAtATime); some.length > 0; ) {
        findings.push(...(await lint(some)));
        some = templates.splice(0, lintedAtATime);
      }
    };
    const count = templates.length;
    await Promise.all(Array.from({ length: availableParallelism() }, lintNext));
    for (const finding of findings) console.log(finding);
    console.log(`cfn-lint: ${count} templates, ${findings.length === 0 ? "nothing found" : "see above"}`);
    return findings.length === 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function lint(templates: readonly string[]): Promise<string[]> {
  const ignored = Object.keys(ignoredRules).flatMap((rule) => ["--ignore-checks", rule]);
  try {
    await run(join(python, "bin/cfn-lint"), ["--format", "parseable", ...ignored, "--", ...templates]);
    return [];
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { readonly stdout?: string; readonly stderr?: string };
    const said = `${stdout}${stderr}`.trim();
    return said === "" ? [String(error)] : said.split("\n");
  }
}
