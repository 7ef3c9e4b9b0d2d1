import type { LeaseAddress } from "../expressions.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import type { OrderedWait, WaitOrder } from "../protocol/wait-order.ts";
import { Company } from "./company.ts";
import type { FairTerms } from "./options.ts";
import { typicalAfter, typicalHold } from "./queue.ts";
import { QueuedForm } from "./queued-form.ts";
import { Waiter } from "./waiter.ts";

/** How many locks' queues a client keeps an eye on; of those that nobody waits in, the one used longest ago goes first. */
const mostCompanies = 1000;

/** The queues of one client: those of its callers that wait for one lock, wait together. */
export class FairQueues {
  readonly #context: ProtocolContext;
  readonly #companies = new Map<string, Company>();

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  /** Gives those who wait here for a lock, and what they remember of it. */
  company(lock: LeaseAddress): Company {
    const id = JSON.stringify([lock.key, lock.sortKey]);
    const company = this.#companies.get(id) ?? new Company(this.#context, lock);
    this.#companies.delete(id);
    this.#companies.set(id, company);
    if (this.#companies.size > mostCompanies) this.#forgetOne(company);
    return company;
  }

  /** In the order in which callers came. */
  order(terms: FairTerms): WaitOrder {
    return {
      begin: (context, { key, sortKey }, call) => {
        const { clock } = context;
        const company = this.company({ key, sortKey });
        const form = new QueuedForm({ key, sortKey }, clock, call.resumes ? call.owner : undefined);
        const grant: OrderedWait["grant"] = async (attempt, onContended) => {
          const granted = await new Waiter({
            call,
            terms,
            context,
            form,
            company,
            attempt,
            onContended,
          }).grant();
          const typicalMs = typicalHold(granted.item);
          form.typicalMs = () => {
            const heldMs = clock.monotonic() - granted.belief.since.monotonic;
            return typicalAfter(typicalMs, Math.max(heldMs, call.lockAtLeastForMs));
          };
          form.onReleased = () => company.released();
          return granted;
        };
        return { form, grant };
      },
    };
  }

  #forgetOne(newest: Company): void {
    for (const [id, company] of this.#companies) {
      if (!company.isEmpty || company === newest) continue;
      this.#companies.delete(id);
      return;
    }
  }
}
