/** Writes docs/costs.md anew: what is between its markers. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "@leasehold/local";
import { synthesize } from "../../demo/synthesis.ts";
import { leaseholdTemplate } from "../../test/support/cloudformation-app.ts";
import { appAtRest } from "./app-at-rest.ts";
import { countFirings } from "./firing.ts";
import { costReport, markers } from "./report.ts";

const file = new URL("../../docs/costs.md", import.meta.url);

await using resources = new AsyncDisposableStack();
const folder = resources.adopt(await mkdtemp(join(tmpdir(), "leasehold-costs-")), (made) =>
  rm(made, { recursive: true, force: true }),
);
const engine = resources.use(await startEngine());
await synthesize(folder, AbortSignal.timeout(300_000));
const resting = await appAtRest(leaseholdTemplate().json, (functions) =>
  countFirings(folder, engine, functions),
);
const text = await readFile(file, "utf8");
const [before = "", rest = ""] = text.split(markers.begin);
const [, after = ""] = rest.split(markers.end);
await writeFile(file, `${before}${markers.begin}\n\n${await costReport(resting)}\n\n${markers.end}${after}`);
console.log("docs/costs.md is written.");
