import type { AnyScenario } from "../scenario.ts";
import { lock } from "./lock.ts";

export const scenarios: readonly AnyScenario[] = [...lock];
