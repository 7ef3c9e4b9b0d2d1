/** What people and tools send who look after the leases of others. */
import { LeaseAdmin, LeaseOperator } from "@leasehold/client/admin";
import { coreOf, historyItemOf } from "@leasehold/client/internal";
import { setting } from "../../../test/support/recomposed.ts";
import { type OperationSite, type Promised, promised } from "./promised.ts";

const reason = "INC-4411, host is gone";
const operatorOf = (site: OperationSite): LeaseOperator => new LeaseOperator(site.client(), { by: "alice" });

async function all(entries: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of entries);
}

/** Each action and its trace are one transaction of two items, at two units each; a pause has three items besides its trace. */
export const operators: readonly Promised[] = [
  promised("`LeaseAdmin.describe`, one item", "1 Query", [0, 1], async (site, key) => {
    await site.client().acquire(key);
    return () => new LeaseAdmin(site.client()).describe(key);
  }),
  promised("`LeaseOperator.describe`, one item", "1 Query", [0, 1], async (site, key) => {
    await site.client().acquire(key);
    return () => operatorOf(site).describe(key);
  }),
  promised("`stop`", "1 GetItem, 1 TransactWriteItems", [4, 1], async (site) => {
    const { key, token } = await site.client().acquire(site.newKey());
    return () => operatorOf(site).stop(key, { token });
  }),
  promised("`break`", "1 GetItem, 1 TransactWriteItems", [4, 1], async (site) => {
    const { key, token } = await site.client().acquire(site.newKey());
    return () => operatorOf(site).break(key, { token, reason });
  }),
  promised("`break`, another holds it", "1 GetItem", async (site) => {
    const { key } = await site.client().acquire(site.newKey());
    return () => operatorOf(site).break(key, { token: "of another", reason });
  }),
  promised("`pause` of a free key", "3 GetItem, 3 Query, 1 TransactWriteItems", [8, 3], async (site, key) => {
    return () => operatorOf(site).pause(key, { forMs: 60_000, reason });
  }),
  promised("`resume`", "3 GetItem, 1 TransactWriteItems", [8, 3], async (site, key) => {
    await operatorOf(site).pause(key, { forMs: 60_000, reason });
    return () => operatorOf(site).resume(key);
  }),
  promised("`audit` of a key, one entry", "1 Query", [0, 1], async (site, key) => {
    await operatorOf(site).pause(key, { forMs: 60_000, reason });
    return () => all(operatorOf(site).audit({ key }));
  }),
  promised("`history` of a key, one change", "1 Query", [0, 1], async (site) => {
    const { key, ...lease } = (await site.client().acquire(site.newKey())).toJSON();
    const change = { ...lease, key, sortKey: "lease", what: "acquired", at: lease.acquiredAt } as const;
    const { pk, sk, ...attributes } = historyItemOf({ ...change, reason: undefined }, 60_000);
    await coreOf(site.client()).update(setting({ pk: String(pk), sk: String(sk) }, attributes));
    return () => all(operatorOf(site).history(key));
  }),
];
