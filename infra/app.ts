import { App } from "aws-cdk-lib";
import { LeaseholdStack } from "./leasehold-stack.ts";

new LeaseholdStack(new App(), "Leasehold");
