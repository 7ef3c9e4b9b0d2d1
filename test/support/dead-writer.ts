import type { LeaseStore } from "@leasehold/client";

/** What is left of a process that has died. */
interface Remains {
  /** Lets the others write. */
  bury(): void;
  /** Has the first of its writes land that had not landed; it may be refused by now. */
  land(): Promise<void>;
}

/** Lets so many writes through to a store, and no more: the process that sends them from now on dies there. */
export function dieAfter(store: Pick<LeaseStore, "update" | "transact">, writes: number): Remains {
  const { update, transact } = store;
  let written = 0;
  let land = async (): Promise<unknown> => undefined;
  const sent = <T>(send: () => Promise<T>): Promise<T> => {
    written += 1;
    if (written <= writes) return send();
    if (written === writes + 1) land = send;
    return new Promise<never>(() => undefined);
  };
  store.update = (...call) => sent(() => update.apply(store, call));
  store.transact = (...call) => sent(() => transact.apply(store, call));
  return {
    bury: () => Object.assign(store, { update, transact }),
    land: async () => void (await land().catch(() => undefined)),
  };
}
