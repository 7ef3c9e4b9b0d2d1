import type { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import type { LocalApp, LocalAppEvent } from "@leasehold/local";
import type { TransferKind } from "../../../functions/import-orders/schema.ts";
import type { Outcome, Scenario, Stage } from "../../scenario.ts";
import { until } from "../../until.ts";
import { auditTransfers, summarizeTransfers } from "./audit.ts";
import { chunks, done, seed } from "./chunks.ts";
import type { TransferEvidence, TransferRecord } from "./evidence.ts";

const workflowId = "Imports/Workflow/StateMachine";

/**
 * An import that outlives many leases by its heartbeat, and an export that waits for it.
 *
 * Both are the app's workflow; a keeper renews the lease of the one that runs, and the release wakes the other.
 */
export class Imports implements Scenario {
  readonly system = "imports";
  readonly about =
    "a workflow that outlives its leases, since a keeper renews them; another parks until it is over";
  readonly #stage: Stage;
  readonly #arns = new Map<string, TransferKind>();
  #chunksDone = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  hear(event: LocalAppEvent): void {
    if (event.type !== "execution") return;
    const { execution } = event;
    const kind = this.#arns.get(execution.executionArn);
    if (kind === undefined) return;
    const say = (text: string): void =>
      this.#stage.screen.event(this.system, "workflow", undefined, `${kind}: ${text}`);
    if (execution.type === "entered") {
      if (execution.stateName === "Park") say("the lock is held: parks until it is let go, at no cost");
      if (execution.stateName === "StartKeeper") say("has the lock; a keeper renews its lease from now on");
      if (execution.stateName === "Pause") this.#tellProgress(kind, say);
    }
    if (execution.type === "finished") say(execution.status.toLowerCase());
  }

  prepare(): Promise<void> {
    const { app, documents } = this.#stage;
    return seed(documents, app.tableName("Imports/Orders"));
  }

  /** Starts the import; the export finds the lock held. */
  async play(): Promise<Outcome> {
    const { app, documents } = this.#stage;
    const table = app.tableName("Imports/Orders");
    const importing = this.#start("import");
    await until("the import to have the lock", () =>
      app.history(importing).entered.find(({ stateName }) => stateName === "Work"),
    );
    const exporting = this.#start("export");
    await Promise.all([app.finished(importing), app.finished(exporting)]);
    const evidence = await collect(app, documents, table, importing, exporting);
    return { checks: auditTransfers(evidence), inShort: summarizeTransfers(evidence) };
  }

  #start(kind: TransferKind): string {
    const { executionArn } = this.#stage.app.startExecution(workflowId, { kind });
    this.#arns.set(executionArn, kind);
    return executionArn;
  }

  #tellProgress(kind: TransferKind, say: (text: string) => void): void {
    if (kind !== "import") return;
    this.#chunksDone += 1;
    if (this.#chunksDone % 3 === 0) say(`${this.#chunksDone} of ${chunks} chunks done`);
  }
}

async function collect(
  app: LocalApp,
  documents: DynamoDBDocumentClient,
  table: string,
  importing: string,
  exporting: string,
): Promise<TransferEvidence> {
  const { keeper, leaseDurationMs } = keeperOf(app, importing);
  // A keeper notices within a beat that there is nothing left to keep.
  await app.finished(keeper);
  const beaten = app.history(keeper).entered;
  return {
    chunks,
    leaseDurationMs,
    import: recordOf(app, importing),
    export: recordOf(app, exporting),
    imported: await done(documents, table, "import"),
    exported: await done(documents, table, "export"),
    beats: beaten.filter(({ stateName }) => stateName === "Renew").length,
    keeperTransitions: beaten.length,
  };
}

/** What a keeper is started with. */
interface KeeperInput {
  readonly guarded: string;
  readonly lease: { readonly leaseDurationMs: number };
}

function keeperOf(
  app: LocalApp,
  guarded: string,
): { readonly keeper: string; readonly leaseDurationMs: number } {
  for (const { executionArn: keeper, input } of app.executions("Leasehold/Heartbeat/StateMachine")) {
    const { guarded: watched, lease } = input as KeeperInput;
    if (watched === guarded) return { keeper, leaseDurationMs: lease.leaseDurationMs };
  }
  throw new Error(`nobody keeps the lease of ${guarded}`);
}

function recordOf(app: LocalApp, executionArn: string): TransferRecord {
  const execution = app.executions().find((one) => one.executionArn === executionArn);
  if (execution === undefined) throw new Error(`there is no execution ${executionArn}`);
  const states = app
    .history(executionArn)
    .entered.map(({ stateName, at }) => ({ stateName, at: Date.parse(at) }));
  return {
    status: execution.status,
    startedAt: Date.parse(execution.startDate),
    endedAt: Date.parse(execution.stopDate ?? ""),
    states,
  };
}
