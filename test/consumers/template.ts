import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** How many resources of each type the stranger's stack has at least: one schedule for each of its jobs. */
const expected: Readonly<Record<string, number>> = {
  "AWS::CloudWatch::Dashboard": 1,
  "AWS::DynamoDB::GlobalTable": 1,
  "AWS::Scheduler::Schedule": 7,
  // Two of the heartbeat that is named, two of the one that the jobs share; five jobs; the import; the redrive guard.
  "AWS::StepFunctions::StateMachine": 11,
};

/** Rejects if an assembly lacks what `fixtures/stranger-stack.ts` is to make. */
export async function checkTemplate(assembly: string): Promise<void> {
  const file = join(assembly, "StrangerStack.template.json");
  const { Resources } = JSON.parse(await readFile(file, "utf8")) as {
    readonly Resources: Readonly<Record<string, { readonly Type: string }>>;
  };
  const types = Object.values(Resources).map(({ Type }) => Type);
  for (const [type, least] of Object.entries(expected)) {
    const count = types.filter((each) => each === type).length;
    if (count < least) throw new Error(`${file} has ${count} of ${type}; expected: at least ${least}`);
  }
}
