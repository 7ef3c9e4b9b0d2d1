import { BatchWriteCommand, type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { LocalApp, LocalAppEvent } from "@leasehold/local";
import { doneKey, pendingKey, type TransferKind } from "../functions/import-orders/schema.ts";
import type { Screen } from "./screen.ts";

/** How many chunks are imported; the workflow pauses for 2 s between two of them. */
const chunks = 10;
const ordersPerChunk = 3;
const workflowId = "Imports/Workflow/StateMachine";

/** A chunk that was transferred, as the table remembers it. */
export interface DoneChunk {
  readonly chunk: string;
  readonly by: string;
  readonly fencingToken: number;
}

/** What became of one of the two workflows. */
export interface TransferRecord {
  readonly status: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** Names of the states that it entered, in order. */
  readonly states: readonly { readonly stateName: string; readonly at: number }[];
}

/** All that the audit looks at. */
export interface TransferEvidence {
  readonly chunks: number;
  readonly leaseDurationMs: number;
  readonly import: TransferRecord;
  readonly export: TransferRecord;
  readonly imported: readonly DoneChunk[];
  readonly exported: readonly DoneChunk[];
  /** Beats of the import's keeper, and the state transitions of its whole life. */
  readonly beats: number;
  readonly keeperTransitions: number;
}

/**
 * An import that outlives many leases by its heartbeat, and an export that waits for it.
 *
 * Both are the app's workflow; a keeper renews the lease of the one that runs, and the release wakes the other.
 */
export class Transfers {
  readonly #screen: Screen;
  readonly #arns = new Map<string, TransferKind>();
  #chunksDone = 0;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Takes what happens in the app. */
  hear(event: LocalAppEvent): void {
    if (event.type !== "execution") return;
    const { execution } = event;
    const kind = this.#arns.get(execution.executionArn);
    if (kind === undefined) return;
    const say = (text: string): void =>
      this.#screen.event("workflow", undefined, undefined, `${kind}: ${text}`);
    if (execution.type === "entered") {
      if (execution.stateName === "Park") say("the lock is held: parks until it is let go, at no cost");
      if (execution.stateName === "StartKeeper") say("has the lock; a keeper renews its lease from now on");
      if (execution.stateName === "Pause") this.#tellProgress(kind, say);
    }
    if (execution.type === "finished") say(execution.status.toLowerCase());
  }

  /** Writes the chunks, and starts the import; the export finds the lock held. */
  async start(app: LocalApp, documents: DynamoDBDocumentClient): Promise<() => Promise<TransferEvidence>> {
    const table = app.tableName("Imports/Orders");
    await seed(documents, table);
    const importing = this.#startOne(app, "import");
    while (!app.history(importing).entered.some(({ stateName }) => stateName === "Work")) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const exporting = this.#startOne(app, "export");
    return () => this.#finish(app, documents, table, importing, exporting);
  }

  #startOne(app: LocalApp, kind: TransferKind): string {
    const { executionArn } = app.startExecution(workflowId, { kind });
    this.#arns.set(executionArn, kind);
    return executionArn;
  }

  #tellProgress(kind: TransferKind, say: (text: string) => void): void {
    if (kind !== "import") return;
    this.#chunksDone += 1;
    if (this.#chunksDone % 3 === 0) say(`${this.#chunksDone} of ${chunks} chunks done`);
  }

  async #finish(
    app: LocalApp,
    documents: DynamoDBDocumentClient,
    table: string,
    importing: string,
    exporting: string,
  ): Promise<TransferEvidence> {
    await Promise.all([app.finished(importing), app.finished(exporting)]);
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
    for (const { sk, by, fencingToken } of Items) found.push({ chunk: sk, by, fencingToken });
  }
  return found;
}
