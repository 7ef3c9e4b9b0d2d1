import type { AnyScenario } from "../scenario.ts";
import { fairLock } from "./fair-lock.ts";
import { lock } from "./lock.ts";
import { seats } from "./seats.ts";

export const scenarios: readonly AnyScenario[] = [...lock, ...fairLock, ...seats];
