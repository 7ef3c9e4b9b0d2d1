import { App, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { acknowledgeFindings } from "./acknowledged-findings.ts";
import { LeaseholdStack } from "./leasehold-stack.ts";
import { demonstrationPaceAt, deployedPace } from "./pace.ts";

const app = new App();
const isDemonstration = app.node.tryGetContext("leasehold:pace") === "demonstration";
const stretch = Number(app.node.tryGetContext("leasehold:stretch") ?? 1);
const stack = new LeaseholdStack(app, "Leasehold", {
  pace: isDemonstration ? demonstrationPaceAt(stretch) : deployedPace,
});
acknowledgeFindings(stack);
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
