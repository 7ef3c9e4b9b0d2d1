import { BatchWriteCommand, type DynamoDBDocumentClient, QueryCommand } from "@aws-sdk/lib-dynamodb";
import type { LocalApp, LocalAppEvent } from "@leasehold/local";
import { doneKey, pendingKey, type TransferKind } from "../../../functions/import-orders/schema.ts";
import { check, type Outcome, promise, type Scenario } from "../scenario.ts";
import type { Kind } from "../screen.ts";
import type { Stage } from "../stage.ts";

/** How many chunks are imported; the workflow pauses between two of them. */
const chunks = 10;
const ordersPerChunk = 3;

/** The export's own clock wakes it after 4 s at the soonest by then; the release has to be quicker. */
const promptlyMs = 3_000;

/** How many times its lease the import has to last, at the least. */
const fewestLeases = 5;

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
    return this.#audit(importing, exporting);
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

  /** Judges by the histories of both workflows, by their keeper's, and by what the table has of each. */
  async #audit(importing: string, exporting: string): Promise<Outcome> {
    const { app, tempo } = this.#stage;
    const { keeper, leaseDurationMs } = keeperOf(app, importing);
    // A keeper notices within a beat that there is nothing left to keep.
    await app.finished(keeper);
    const beats = app
      .history(keeper)
      .entered.flatMap(({ stateName, at }) => (stateName.startsWith("Renew") ? [Date.parse(at)] : []));
    const [imported, exported] = [await this.#done("import"), await this.#done("export")];
    const began = enteredAt(app, importing, "Leasehold_StartKeeper");
    const released = enteredAt(app, importing, "Leasehold_Release");
    const handOverMs = enteredAt(app, exporting, "Leasehold_StartKeeper") - released;
    // Where its clock rang in the same moment, it has to be quicker than that would let it be the next time.
    const isWoken = !this.#overslept.some((at) => at >= released) || handOverMs < tempo.ms(promptlyMs);
    const wake = isWoken && handOverMs >= 0 ? "by the release" : `${handOverMs} ms after it`;
    const leases = Math.floor((released - began) / leaseDurationMs);
    const longestMs = Math.max(...beats.map((at, index) => at - (beats[index - 1] ?? began)));
    const succeeded = [importing, exporting].filter((arn) => statusOf(app, arn) === "SUCCEEDED");
    const tokensOfImport = new Set(imported).size;
    const isLater = Math.max(...imported) < Math.min(...exported);
    const enough = `${fewestLeases} or more`;
    return {
      checks: [
        check("workflows that succeeded", 2, succeeded.length),
        check("chunks imported, once each", chunks, imported.length),
        check("fencing tokens of the import, from first to last", 1, tokensOfImport),
        check(
          "leases that the import outlived by its heartbeat",
          enough,
          leases >= fewestLeases ? enough : leases,
        ),
        check("the export was woken", "by the release", wake),
        promise("the export's fencing token is the larger one", "yes", isLater ? "yes" : "no"),
      ],
      inShort:
        `${imported.length} chunks imported under one lock for ${leases} times its lease, ` +
        `${beats.length} heartbeats, then the export`,
      late:
        longestMs >= leaseDurationMs
          ? [`the keeper of the import renewed a lease of ${leaseDurationMs} ms only after ${longestMs} ms`]
          : [],
    };
  }

  /** The fencing tokens under which something was transferred, one for each chunk that the table has. */
  async #done(kind: TransferKind): Promise<number[]> {
    const { app, documents } = this.#stage;
    const { Items = [] } = await documents.send(
      new QueryCommand({
        TableName: app.tableName("Imports/Orders"),
        KeyConditionExpression: "pk = :done",
        ExpressionAttributeValues: { ":done": doneKey(kind, "").pk },
        ConsistentRead: true,
      }),
    );
    return Items.map(({ fencingToken }) => Number(fencingToken));
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

function statusOf(app: LocalApp, arn: string): string | undefined {
  return app.executions().find(({ executionArn }) => executionArn === arn)?.status;
}

/** When an execution entered a state for the last time; not a number where it never came there. */
function enteredAt(app: LocalApp, executionArn: string, name: string): number {
  const last = app.history(executionArn).entered.findLast(({ stateName }) => stateName === name);
  return Date.parse(last?.at ?? "never");
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
