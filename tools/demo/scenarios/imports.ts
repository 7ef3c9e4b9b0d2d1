import { BatchWriteCommand, type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { LocalApp, LocalAppEvent } from "@leasehold/local";
import { doneKey, pendingKey, type TransferKind } from "../../../functions/import-orders/schema.ts";
import type { Outcome, Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";
import {
  type DoneChunk,
  judgeTransfers,
  type TransferEvidence,
  type TransferRecord,
} from "./imports-audit.ts";

/** How many chunks are imported; the workflow pauses between two of them. */
const chunks = 10;
const ordersPerChunk = 3;

/** The export's own clock wakes it after 4 s at the soonest by then; the release has to be quicker. */
const promptlyMs = 3_000;

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
  readonly #overslept: number[] = [];
  #hasWaited = false;
  #chunksDone = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    stage.hear((event) => this.#hear(event));
  }

  prepare(): Promise<void> {
    const { app, documents } = this.#stage;
    return seed(documents, app.tableName("Imports/Orders"));
  }

  /** Starts the import; the export finds the lock held. */
  async play(): Promise<Outcome> {
    const { app, tempo } = this.#stage;
    const importing = this.#start("import");
    await tempo.until("the import to have the lock", () =>
      app.history(importing).entered.find(({ stateName }) => stateName === "Leasehold_Work"),
    );
    const exporting = this.#start("export");
    await Promise.all([app.finished(importing), app.finished(exporting)]);
    return judgeTransfers(await this.#collect(importing, exporting));
  }

  #hear(event: LocalAppEvent): void {
    if (event.type !== "execution") return;
    const { execution } = event;
    const kind = this.#arns.get(execution.executionArn);
    if (kind === undefined) return;
    const say = (text: string, mark: Kind = "workflow"): void =>
      this.#stage.screen.event(this.system, mark, undefined, `${kind}: ${text}`);
    if (execution.type === "finished") {
      say(execution.status.toLowerCase());
      if (kind === "export") this.#progress(chunks + 1, "both are over");
    }
    if (execution.type === "failed" && execution.stateName === "Leasehold_Park") {
      if (execution.error === "States.Timeout") this.#overslept.push(Date.now());
    }
    if (execution.type !== "entered") return;
    switch (execution.stateName) {
      case "Leasehold_Park":
        // It may have to look again: that is news only once.
        say("the lock is held: parks until it is let go, at no cost", this.#hasWaited ? "workflow" : "waits");
        this.#hasWaited = true;
        break;
      case "Leasehold_StartKeeper":
        this.#progress(kind === "import" ? 0 : chunks, `the ${kind} has the lock`);
        say("has the lock; a keeper renews its lease from now on", kind === "import" ? "workflow" : "goesOn");
        break;
      case "Pause":
        if (kind === "import") this.#tellChunk(say);
        break;
    }
  }

  #start(kind: TransferKind): string {
    const { executionArn } = this.#stage.app.startExecution(workflowId, { kind });
    this.#arns.set(executionArn, kind);
    return executionArn;
  }

  #tellChunk(say: (text: string) => void): void {
    this.#chunksDone += 1;
    this.#progress(this.#chunksDone, `chunk ${this.#chunksDone} of ${chunks} is imported; the export waits`);
    if (this.#chunksDone % 3 === 0) say(`${this.#chunksDone} of ${chunks} chunks done`);
  }

  #progress(done: number, text: string): void {
    this.#stage.screen.progress(this.system, done, chunks + 1, text);
  }

  async #collect(importing: string, exporting: string): Promise<TransferEvidence> {
    const { app, documents, tempo } = this.#stage;
    const table = app.tableName("Imports/Orders");
    const { keeper, leaseDurationMs } = keeperOf(app, importing);
    // A keeper notices within a beat that there is nothing left to keep.
    await app.finished(keeper);
    const beaten = app.history(keeper).entered;
    return {
      chunks,
      leaseDurationMs,
      promptlyMs: tempo.ms(promptlyMs),
      import: recordOf(app, importing),
      export: recordOf(app, exporting),
      overslept: this.#overslept,
      imported: await done(documents, table, "import"),
      exported: await done(documents, table, "export"),
      beats: beaten.filter(({ stateName }) => stateName.startsWith("Renew")).map(({ at }) => Date.parse(at)),
      // It has started when it tells the workflow to go on.
      beatTransitions: beaten.slice(beaten.findIndex(({ stateName }) => stateName === "GoOn") + 1).length,
    };
  }
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
    states,
  };
}

/** Writes the chunks of the import, and the order ids of the export. */
async function seed(documents: DynamoDBDocumentClient, table: string): Promise<void> {
  const names = Array.from({ length: chunks }, (_, index) => `chunk-${String(index + 1).padStart(2, "0")}`);
  const ordersOf = (chunk: string) =>
    Array.from({ length: ordersPerChunk }, (_, index) => ({
      orderId: `${chunk}/${index + 1}`,
      product: "mug",
      quantity: index + 1,
    }));
  const imports = names.map((chunk) => ({ ...pendingKey("import", chunk), orders: ordersOf(chunk) }));
  const orderIds = names.flatMap((chunk) => ordersOf(chunk).map(({ orderId }) => orderId));
  const items = [...imports, { ...pendingKey("export", "all"), orderIds }];
  const puts = items.map((Item) => ({ PutRequest: { Item } }));
  await documents.send(new BatchWriteCommand({ RequestItems: { [table]: puts } }));
}

/** Reads what was transferred. */
async function done(
  documents: DynamoDBDocumentClient,
  table: string,
  kind: TransferKind,
): Promise<DoneChunk[]> {
  const found: DoneChunk[] = [];
  const pages = paginateQuery(
    { client: documents },
    {
      TableName: table,
      KeyConditionExpression: "pk = :done",
      ExpressionAttributeValues: { ":done": doneKey(kind, "").pk },
      ConsistentRead: true,
    },
  );
  for await (const { Items = [] } of pages) {
    for (const { sk, fencingToken } of Items) found.push({ chunk: sk, fencingToken });
  }
  return found;
}
