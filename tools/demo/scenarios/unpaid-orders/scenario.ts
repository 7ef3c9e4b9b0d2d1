import { environmentNames } from "@leasehold/client/environment";
import { leaseSortKey } from "@leasehold/client/schema";
import type { LocalAppEvent } from "@leasehold/local";
import { closeUnpaidOrdersKey } from "../../../../functions/close-unpaid-orders/job.ts";
import { readShop, seedShop } from "../../../../functions/close-unpaid-orders/shop-table.ts";
import { readGrants } from "../../grants.ts";
import type { Outcome, Scenario, Stage } from "../../scenario.ts";
import { audit, lateIn, summarize } from "./audit.ts";
import { plan, plannedTickMs, scheduledAt, shopAtStart } from "./plan.ts";
import { Run } from "./play.ts";
import type { Evidence } from "./recording.ts";

/** Before the first tick; the orders are written in between, and the others' first instances have started by then. */
const leadMs = 2_000;

/** A job that closes unpaid orders, triggered on several instances at once: each tick has one run. */
export class UnpaidOrders implements Scenario {
  readonly system = "orders";
  readonly about: string;
  readonly #stage: Stage;
  readonly #run: Run;
  readonly #tickMs: number;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#tickMs = stage.tempo.ms(plannedTickMs);
    const job = stage.app.spec.functions.find(
      ({ environment }) => environment[environmentNames.job] !== undefined,
    );
    const leaseMs = Number(job?.environment[environmentNames.lockAtMostForMs]);
    this.#run = new Run(stage, leaseMs);
    this.about =
      `a job closes unpaid orders, every ${this.#tickMs / 1000} s on several instances at once; ` +
      `its lease of ${leaseMs / 1000} s is renewed`;
  }

  hear(event: LocalAppEvent): void {
    this.#run.instances.hear(event);
  }

  async play(): Promise<Outcome> {
    const { app, documents, tempo } = this.#stage;
    const shopTable = app.tableName("UnpaidOrders/Shop");
    const firstTickAt = Date.now() + tempo.ms(leadMs);
    const before = shopAtStart(firstTickAt, this.#tickMs);
    await seedShop(documents, shopTable, before);
    await this.#run.play(firstTickAt);

    const { deliveries, events, casualties, instances } = this.#run;
    const { closed, ...rest } = await readShop(documents, shopTable);
    const named = closed.map((order) => ({ ...order, closedBy: instances.nameOf(order.closedBy) }));
    const grants = await readGrants(this.#stage, instances, closeUnpaidOrdersKey, events);
    const evidence: Evidence = {
      deliveries,
      events,
      casualties,
      plan,
      // Other leases under the job's key belong to its run history.
      grants: grants.filter(({ sortKey }) => sortKey === leaseSortKey),
      lastScheduledAt: scheduledAt(firstTickAt, plan.length, this.#tickMs),
      before,
      after: { ...rest, closed: named },
    };
    return { checks: audit(evidence), inShort: summarize(evidence), late: lateIn(evidence) };
  }
}
