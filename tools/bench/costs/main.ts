/** Writes the generated parts of docs/costs.md and docs/requests.md anew. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "@leasehold/engine";
import { leaseholdTemplate } from "../../../test/support/cloudformation-app.ts";
import { synthesize } from "../../demo/synthesis.ts";
import { requestsReport } from "../operations/index.ts";
import { appAtRest, countFirings } from "./app-at-rest.ts";
import { writeGenerated } from "./markdown.ts";
import { costReport } from "./report.ts";

await writeGenerated("requests.md", requestsReport());

await using resources = new AsyncDisposableStack();
const folder = resources.adopt(await mkdtemp(join(tmpdir(), "leasehold-costs-")), (made) =>
  rm(made, { recursive: true, force: true }),
);
const engine = resources.use(await startEngine());
await synthesize(folder, AbortSignal.timeout(300_000));
const resting = await appAtRest(leaseholdTemplate().json, (functions) =>
  countFirings(folder, engine, functions),
);
await writeGenerated("costs.md", await costReport(resting));
