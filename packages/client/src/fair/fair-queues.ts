import type { LeasePlace } from "../expressions.ts";
import type { AcquireCall } from "../protocol/acquirer.ts";
import type { Acquisition, Granted } from "../protocol/acquisition.ts";
import type { Approach } from "../protocol/approach.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import type { ExpiryDetector } from "../protocol/expiry-detector.ts";
import type { LeaseRecord } from "../record.ts";
import { Company } from "./company.ts";
import type { FairTerms } from "./options.ts";
import { typicalAfter, typicalHold } from "./queue.ts";
import { TurnStore } from "./turn-store.ts";
import { Waiter } from "./waiter.ts";

/** How many locks' queues a client keeps an eye on; of those that nobody waits in, the one used longest ago goes first. */
const mostCompanies = 1000;

/** The queues of one client: those of its callers that wait for one lock, wait together. */
export class FairQueues {
  readonly #context: ProtocolContext;
  readonly #detector: ExpiryDetector;
  readonly #companies = new Map<string, Company>();

  constructor(context: ProtocolContext, detector: ExpiryDetector) {
    this.#context = context;
    this.#detector = detector;
  }

  /** Gives those who wait here for a lock, and what they remember of it. */
  company(lock: LeasePlace): Company {
    const id = JSON.stringify([lock.key, lock.place]);
    const company = this.#companies.get(id) ?? new Company(this.#context, this.#detector, lock);
    this.#companies.delete(id);
    this.#companies.set(id, company);
    if (this.#companies.size > mostCompanies) this.#forgetOne(company);
    return company;
  }

  /** In the order in which callers came. */
  approach(call: AcquireCall, terms: FairTerms): Approach {
    const shared = this.#context;
    const company = this.company(call);
    const store = new TurnStore(shared.store, shared.clock, call.resumes ? call.owner : undefined);
    const grant = async (
      acquisition: Acquisition,
      onContended: (record: LeaseRecord) => void,
    ): Promise<Granted> => {
      const parts = { call, terms, context: shared, store, company, acquisition, onContended };
      const granted = await new Waiter(parts).grant();
      const typicalMs = typicalHold(store.lastItem);
      store.typicalMs = () => {
        const heldMs = shared.clock.monotonic() - granted.belief.since.monotonic;
        return typicalAfter(typicalMs, Math.max(heldMs, call.lockAtLeastForMs));
      };
      store.onReleased = () => company.released();
      return granted;
    };
    return { context: { ...shared, store }, detector: this.#detector, grant };
  }

  #forgetOne(newest: Company): void {
    for (const [id, company] of this.#companies) {
      if (!company.isEmpty || company === newest) continue;
      this.#companies.delete(id);
      return;
    }
  }
}
