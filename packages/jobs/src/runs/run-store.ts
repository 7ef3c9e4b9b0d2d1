import type { CallOptions, Item, LeaseStore, UpdateRequest, UpdateResult } from "@leasehold/client";
import {
  isHeldBy,
  kindOf,
  LeaseError,
  lastDoneSlot,
  optionalWholeIn,
  PassingStore,
  readRecord,
} from "@leasehold/client/internal";
import { RunsExhaustedError } from "./errors.ts";
import { claim, endWithoutOutcome, keepForSlot, type Outcome, recordOutcome, report } from "./expressions.ts";
import { runAttributeNames, runSortKeyPrefix } from "./schema.ts";

/** What one attempt has to tell the ledger, until a write of its lease takes it along. */
export interface Passenger {
  readonly attempt: number;
  /** JSON text of the latest report. */
  progress: string | undefined;
  outcome: Omit<Outcome, "progress"> | undefined;
  /** Whether a write with the outcome has been sent. */
  isOutcomeSent: boolean;
}

/** What holds for all runs of a job. */
export interface RunRules {
  readonly maxAttempts: number;
  readonly keepForMs: number;
}

/**
 * The store of a job's runs: lets the lease's own writes take along what the ledger wants to know.
 *
 * The claim counts the attempt, renewals bring reports, the release brings the outcome: a run costs the requests of
 * its lease and no other, and everything that the protocol does about lost and late answers holds for the ledger too.
 */
export class RunStore extends PassingStore {
  readonly #rules: RunRules;
  /** By the token of the attempt. */
  readonly #passengers = new Map<string, Passenger>();

  constructor(store: LeaseStore, rules: RunRules) {
    super(store);
    this.#rules = rules;
  }

  /** What rides on the writes of a lease that has been won; undefined once its attempt has been dismissed. */
  passenger(token: string): Passenger | undefined {
    return this.#passengers.get(token);
  }

  /** Forgets an attempt that has ended. */
  dismiss(token: string): void {
    this.#passengers.delete(token);
  }

  override async update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    const laden = this.#load(request);
    const result = await this.store.update(laden, options);
    this.#unload(request, laden, result);
    return result;
  }

  override async updateMany(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseError | undefined)[]> {
    const laden = requests.map((request) => this.#load(request));
    const results = await this.store.updateMany(laden, options);
    for (const [index, result] of results.entries()) {
      const [request, sent] = [requests[index], laden[index]];
      if (request && sent && result && !(result instanceof LeaseError)) this.#unload(request, sent, result);
    }
    return results;
  }

  #load(request: UpdateRequest): UpdateRequest {
    const slot = slotOf(request);
    return keepForSlot(this.#withPassenger(request, slot), slot, this.#rules.keepForMs);
  }

  #withPassenger(request: UpdateRequest, slot: string): UpdateRequest {
    const passenger = this.#passengers.get(String(request.values[":token"]));
    switch (kindOf(request)) {
      case "acquire":
      case "takeOver":
        return claim(request, this.#rules.maxAttempts);
      case "renew":
        return passenger?.progress === undefined ? request : report(request, passenger.progress);
      case "end": {
        if (passenger?.outcome === undefined) {
          this.dismiss(String(request.values[":token"]));
          return endWithoutOutcome(request);
        }
        passenger.isOutcomeSent = true;
        return recordOutcome(request, { ...passenger.outcome, progress: passenger.progress }, slot);
      }
      default:
        return request;
    }
  }

  #unload(request: UpdateRequest, laden: UpdateRequest, { applied, item }: UpdateResult): void {
    const token = String(request.values[":token"]);
    const owner = String(request.values[":owner"]);
    const kind = kindOf(request);
    if (kind === "renew") {
      const passenger = this.#passengers.get(token);
      // A report that has been made since waits for the next renewal.
      if (applied && passenger?.progress === laden.values[":progress"] && passenger)
        passenger.progress = undefined;
    } else if (kind === "acquire" || kind === "takeOver") {
      if (applied || isHeldBy(item, { token, owner })) this.#board(token, item);
      else this.#checkAttempts(request, item);
    }
  }

  #board(token: string, item: Item | undefined): void {
    if (this.#passengers.has(token)) return;
    const attempt = Number(item?.[runAttributeNames.attempt]);
    this.#passengers.set(token, { attempt, progress: undefined, outcome: undefined, isOutcomeSent: false });
  }

  /** A claim that was refused for its bound alone is refused by name. */
  #checkAttempts(request: UpdateRequest, item: Item | undefined): void {
    if (item === undefined) return;
    const attempts = optionalWholeIn(item, runAttributeNames.attempt) ?? 0;
    if (attempts < this.#rules.maxAttempts) return;
    const record = readRecord(item);
    const { ":judgedToken": token, ":judgedVersion": version } = request.values;
    const isInTheWay =
      record === undefined
        ? lastDoneSlot(item) !== undefined
        : record.token !== token || record.version !== version;
    if (isInTheWay) return;
    const remark = item[runAttributeNames.remark];
    throw new RunsExhaustedError(request.key.pk, slotOf(request), {
      attempts,
      maxAttempts: this.#rules.maxAttempts,
      remark: remark === undefined ? undefined : String(remark),
    });
  }
}

function slotOf({ key }: UpdateRequest): string {
  return key.sk.slice(runSortKeyPrefix.length);
}
