// @module-tag long
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { LeasedWorkflow, LeaseTable, LeaseWakeup, SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assemble, packPython } from "../../tools/packaging/python.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const requirements = join(root, "test/python/requirements.txt");
const python = join(root, "node_modules/.cache/leasehold-python");
const hasPython = await run("python3", [
  "-c",
  "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))",
])
  .then(() => true)
  .catch(() => false);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-python-test-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** The stack of docs/python.md, and {@link workflowInPython}. */
function templateInTypeScript(): unknown {
  const app = new App({ outdir: join(folder, "typescript") });
  const stack = new Stack(app, "Billing");
  const table = new LeaseTable(stack, "Leases", { stream: true });
  const report = new LambdaFunction(stack, "Report", {
    runtime: Runtime.PYTHON_3_13,
    handler: "index.handler",
    code: Code.fromInline("def handler(event, context): print(event['fencingToken'])"),
  });
  new SingletonJob(stack, "Nightly", {
    table,
    schedule: ScheduleExpression.cron({ hour: "3", minute: "0" }),
    target: SingletonJobTarget.lockedLambda(report, { timeout: Duration.minutes(5) }),
  });
  const wakeup = new LeaseWakeup(stack, "Wakeup", { table });
  const work = new Pass(stack, "Work");
  const workflow = new LeasedWorkflow(stack, "Import", {
    table,
    wakeup,
    key: "import",
    whenHeld: "wait",
    work,
  });
  new SingletonJob(stack, "Hourly", {
    table,
    schedule: ScheduleExpression.rate(Duration.hours(1)),
    target: SingletonJobTarget.workflow(workflow),
  });
  return app.synth().getStackByName("Billing").template;
}

/** A workflow and its job, beside what the page shows. */
const workflowInPython = `
from aws_cdk.aws_stepfunctions import Pass
from leasehold.cdk import LeasedWorkflow, LeaseWakeup
wakeup = LeaseWakeup(stack, "Wakeup", table=table)
workflow = LeasedWorkflow(
    stack, "Import", table=table, wakeup=wakeup, key="import", when_held="wait", work=Pass(stack, "Work")
)
SingletonJob(
    stack,
    "Hourly",
    table=table,
    schedule=ScheduleExpression.rate(Duration.hours(1)),
    target=SingletonJobTarget.workflow(
        state_machine=workflow.state_machine, redrive_guard=workflow.redrive_guard
    ),
)
`;

/** Installs the constructs in an environment of their own. */
async function install(): Promise<void> {
  const pip = join(python, "bin/pip");
  if (!existsSync(pip)) {
    await mkdir(dirname(python), { recursive: true });
    await run("python3", ["-m", "venv", python]);
  }
  const quietly = ["--quiet", "--disable-pip-version-check", "--no-input"];
  await run(pip, ["install", ...quietly, "-r", requirements]);
  await run(pip, ["uninstall", ...quietly, "--yes", "leasehold-cdk"]);
  await run(pip, ["install", ...quietly, await packPython(folder)]);
}

async function runInPython(program: string): Promise<string> {
  const file = join(folder, "app.py");
  await writeFile(file, program);
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  const env = { ...process.env, CDK_OUTDIR: join(folder, "python"), PATH: path };
  const { stdout } = await run(join(python, "bin/python"), [file], { cwd: folder, env });
  return stdout;
}

// Where Python is, the wheel is made of the same.
it.skipIf(hasPython)("every public declaration of the constructs is one that jsii can express", async () => {
  const assembled = join(folder, "assembled");
  await assemble(assembled);
  const { types } = JSON.parse(await readFile(join(assembled, ".jsii"), "utf8")) as {
    readonly types: Readonly<Record<string, unknown>>;
  };
  expect(Object.keys(types)).toEqual(
    expect.arrayContaining(
      ["LeaseTable", "LeasedWorkflow", "SingletonJob"].map((name) => `@leasehold/cdk.${name}`),
    ),
  );
});

describe.skipIf(!hasPython)("the constructs in Python", () => {
  // Two compilations, and the CDK for Python from the network.
  beforeAll(install, 900_000);

  it("make of the stack in docs/python.md and of a workflow the template that TypeScript makes of them", async () => {
    const page = await readFile(join(root, "docs/python.md"), "utf8");
    const program = /```python\n(.+?)```/s.exec(page)?.[1] ?? "";
    await runInPython(program.replace("app.synth()", `${workflowInPython}app.synth()`));
    const made: unknown = JSON.parse(await readFile(join(folder, "python/Billing.template.json"), "utf8"));
    expect(made).toEqual(templateInTypeScript());
  });

  it("refuse a text that is none of the allowed ones, with the words of TypeScript", async () => {
    const program = [
      "from aws_cdk import App, Stack",
      "from aws_cdk.aws_stepfunctions import Pass",
      "from leasehold.cdk import LeasedWorkflow, LeaseTable",
      'stack = Stack(App(), "Billing")',
      "try:",
      '    LeasedWorkflow(stack, "W", table=LeaseTable(stack, "T"), work=Pass(stack, "P"), when_held="stop")',
      "except RuntimeError as error:",
      "    print(error)",
    ].join("\n");
    expect(await runInPython(program)).toContain(
      'whenHeld is "stop": give one of "fail", "skip", "wait", "replace"',
    );
  });
});
