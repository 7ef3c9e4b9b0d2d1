// The recipe for cron and systemd, as it stands on its page: only its paths and its table are those of the test.

import { spawn, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JobRuns } from "@leasehold/jobs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { blocksOf } from "../docs/blocks.ts";
import { bundleCli, cliEnvironment } from "../support/cli-process.ts";
import { makeTable, type TestTable } from "../support/table.ts";

const engine = inject("engine");
const blocks = blocksOf("docs/recipes/cron.md");
let folder: string;
let table: TestTable;

/** The block of a language in which a word stands. */
function block(language: string, word: string): string {
  const found = blocks.find((one) => one.language === language && one.code.includes(word));
  if (found === undefined) throw new Error(`the page has no ${language} with ${word}`);
  return found.code;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-cron-"));
  table = await makeTable(engine);
  // node and leasehold are in one folder, as nvm has them.
  const main = await bundleCli(join(folder, "lib"));
  await mkdir(join(folder, "bin"));
  await symlink(process.execPath, join(folder, "bin/node"));
  await writeFile(join(folder, "bin/leasehold"), `#!/bin/sh\nexec node ${main} "$@"\n`, { mode: 0o755 });
  const { PATH: _, HOME: __, USER: ___, ...variables } = cliEnvironment(engine, table.tableName);
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(folder, "leasehold.env"), lines.join(""));
});
afterAll(async () => {
  table.close();
  await rm(folder, { recursive: true, force: true });
});

describe("the crontab of the recipe", () => {
  /** Runs its line as cron does: by sh, with the variables of the crontab and few others. */
  async function tick(job: string, body: string): Promise<{ readonly code: number; readonly mail: string }> {
    const program = join(folder, `${job}.sh`);
    await writeFile(program, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    const lines = block("crontab", "jobs run").trim().split("\n");
    const [, command = ""] = /^(?:\S+ +){5}(.*)$/m.exec(lines.at(-1) ?? "") ?? [];
    const [, path = ""] = /^PATH=[^:]+(.*)$/.exec(lines[0] ?? "") ?? [];
    const here = command
      .replace("run nightly ", `run ${job} `)
      .replace("/opt/jobs/nightly.sh", program)
      .replace("/etc/leasehold.env", join(folder, "leasehold.env"));
    const env = { HOME: folder, SHELL: "/bin/sh", LOGNAME: "jobs", PATH: `${folder}/bin${path}` };
    const child = spawn("/bin/sh", ["-c", here], { env, stdio: ["ignore", "pipe", "pipe"] });
    let mail = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        mail += chunk;
      });
    }
    return await new Promise((resolve) => child.on("close", (code) => resolve({ code: code ?? -1, mail })));
  }
  const lastRun = async (job: string) => {
    for await (const run of new JobRuns(table.client(), job).runs({ descending: true, limit: 1 })) return run;
    return undefined;
  };

  it("runs the job once, and leaves cron nothing to mail where it is done", async () => {
    const job = "good";
    const mail = `${job} 1\n`;
    expect(await tick(job, 'echo "$LEASEHOLD_KEY $LEASEHOLD_ATTEMPT"')).toEqual({ code: 0, mail });
    const slot = expect.stringContaining("T03:00:00.000Z");
    expect(await lastRun(job)).toMatchObject({ state: "succeeded", slot });
    expect(await tick(job, "echo again; exit 1")).toEqual({ code: 0, mail: "" });
  });

  it("lets cron mail each failure, tries again, and is silent when the attempts are used up", async () => {
    const job = "bad";
    for (const attempt of [1, 2, 3]) {
      const { code, mail } = await tick(job, "exit 5");
      expect(code).toBe(5);
      expect(mail).toMatch(/^leasehold: .* 03:00 UTC of bad: the command exited 5\n$/);
      expect(await lastRun(job)).toMatchObject({ state: "failed", attempt });
    }
    expect(await tick(job, "exit 5")).toEqual({ code: 1, mail: "" });
  });
});

describe("the page of the recipe", () => {
  it("prints where node and leasehold are", () => {
    const line = block("sh", "command -v").trim().split("\n").at(-1) ?? "";
    const env = { PATH: `${folder}/bin:/usr/bin:/bin` };
    const { stdout } = spawnSync("/bin/sh", ["-c", line], { env, encoding: "utf8" });
    expect(stdout).toBe(`PATH=${folder}/bin:${folder}/bin:/usr/bin:/bin\n`);
  });

  const hasVerifier = spawnSync("systemd-analyze", ["--version"]).status === 0;
  it.skipIf(!hasVerifier)("has units that systemd accepts", async () => {
    const service = join(folder, "nightly.service");
    const timer = join(folder, "nightly.timer");
    await writeFile(service, block("ini", "ExecStart"));
    await writeFile(timer, block("ini", "OnCalendar"));
    const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", service, timer], {
      encoding: "utf8",
    });
    expect({ status, told: `${stdout}${stderr}` }).toEqual({ status: 0, told: "" });
  });
});
