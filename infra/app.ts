import { App, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { acknowledgeFindings } from "./acknowledged-findings.ts";
import { LeaseholdStack } from "./leasehold-stack.ts";
import { demonstrationPace, deployedPace } from "./pace.ts";

const app = new App();
const isDemonstration = app.node.tryGetContext("leasehold:pace") === "demonstration";
const stack = new LeaseholdStack(app, "Leasehold", {
  pace: isDemonstration ? demonstrationPace : deployedPace,
});
acknowledgeFindings(stack);
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
