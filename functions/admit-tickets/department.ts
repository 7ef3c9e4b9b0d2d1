import { type Lease, type LeaseClient, LeaseLostError, type LeaseRecord } from "@leasehold/client";
import { FairLock, QueueFullError } from "@leasehold/client/fair";
import { acquireAll, GroupUnavailableError } from "@leasehold/client/group";
import { agentKey, lineKeys, ticketKey } from "./schema.ts";

/** How a department admits tickets. */
export interface AdmissionRules {
  /** How many may wait in a line, from 1 to 500: so many appointments, and so many others. */
  readonly mostWaiting: number;
  /** ... at departments that have a limit of their own. */
  readonly limits: ReadonlyMap<string, number>;
  /** How many agents serve, from 1 to 20, at departments that have several. @default - one at each */
  readonly agents?: ReadonlyMap<string, number>;
  /** After this much silence, in milliseconds, a ticket counts as gone. */
  readonly silenceMs: number;
  /** How long a ticket is usually in service, in milliseconds. @default - not known: no estimates */
  readonly usualServiceMs?: number | undefined;
}

/** The state of a ticket. */
export type Standing =
  /** The token fences writes in the agent's name. */
  | {
      readonly state: "serving";
      readonly ticket: string;
      readonly agent: number;
      readonly fencingToken: number;
    }
  /** `position` is 1 for the one that comes next; `estimatedWaitMs` is the time until then, when that is known. */
  | {
      readonly state: "waiting";
      readonly ticket: string;
      readonly position: number;
      readonly estimatedWaitMs: number | undefined;
    }
  /** The line is full. `estimatedWaitMs` is the time until there is room, when services are as usual. */
  | {
      readonly state: "refused";
      readonly waiting: number;
      readonly mostWaiting: number;
      readonly estimatedWaitMs?: number | undefined;
    }
  /** It is neither in service nor waiting: it left, was done, or was silent for too long. */
  | { readonly state: "absent"; readonly ticket: string };

/** Which ticket the agent serves now, and how many wait for any agent. */
export interface Served {
  readonly serving: string | undefined;
  readonly waiting: number;
}

/** A department as any caller may see it. */
export interface Queue {
  readonly serving: readonly { readonly agent: number; readonly ticket: string }[];
  /** The tickets that wait, the next one first: appointments, and then the others. */
  readonly waiting: readonly string[];
  /** ... in each of the two lines. */
  readonly mostWaiting: number;
}

/** What a department works with. */
export interface DepartmentParts {
  readonly leases: LeaseClient;
  /** The lease table's name. */
  readonly tableName: string;
  readonly rules: AdmissionRules;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
}

/** What one look shows. */
interface View {
  /** The lease of each agent, also one that has expired. Its owner is the ticket in service. */
  readonly services: readonly (LeaseRecord | undefined)[];
  /** Who stands in the line of appointments, and who in the line of walk-ins; also a ticket in service. */
  readonly standing: readonly (readonly string[])[];
  /** The same without tickets in service. */
  readonly lines: readonly (readonly string[])[];
  /** The tickets that wait, in the order of their turns. */
  readonly turns: readonly string[];
}

const appointments = 0;
const walkIns = 1;

/**
 * One department: its agents, and two lines, one of appointments and one of walk-ins.
 *
 * A line is a fair lock at which tickets check in. Its holder is the first in line, and no more than that. A service is two
 * leases of one token, the agent's and the ticket's, acquired in one transaction: so an agent never has two tickets, and a
 * ticket never has two agents. Then the ticket leaves its line. If the process dies in between, the ticket is in service
 * all the same. Its place is renewed by nobody, and goes at the end of the service at the latest. It stays until then, for
 * a transaction whose answer was lost is taken back: so the ticket has its place again.
 */
export class Department {
  /** How many agents serve. */
  readonly agents: number;
  readonly #leases: LeaseClient;
  readonly #tableName: string;
  readonly #rules: AdmissionRules;
  readonly #now: () => number;
  readonly #name: string;
  readonly #mostWaiting: number;
  readonly #lines: readonly FairLock[];

  constructor({ leases, tableName, rules, now = Date.now }: DepartmentParts, name: string) {
    this.#leases = leases;
    this.#tableName = tableName;
    this.#rules = rules;
    this.#now = now;
    this.#name = name;
    this.agents = rules.agents?.get(name) ?? 1;
    this.#mostWaiting = rules.limits.get(name) ?? rules.mostWaiting;
    const options = { maxWaiters: this.#mostWaiting };
    this.#lines = lineKeys(name).map((key) => new FairLock(leases, key, options));
  }

  /** Joins the end of a line, or is served at once; a ticket that is here already carries on. */
  async enter(ticket: string, hasAppointment: boolean): Promise<Standing> {
    const line = hasAppointment ? appointments : walkIns;
    const view = await this.#look();
    const known = await this.#carryOn(view, ticket);
    if (known !== undefined) return known;

    const inFront = view.lines.slice(0, line + 1).flat().length;
    const served = await this.#takeTurn(view, ticket, inFront + 1);
    if (served !== undefined) return served;
    if ((view.lines[line]?.length ?? 0) >= this.#mostWaiting) return this.#refusal(view, line);
    try {
      await this.#checkIn(line, ticket, true);
    } catch (error) {
      if (!(error instanceof QueueFullError)) throw error;
      return this.#refusal(await this.#look(), line);
    }
    return await this.#joined(ticket, line);
  }

  /** Carries on the service of a ticket, or its waiting; its turn may come. */
  async heartbeat(ticket: string): Promise<Standing> {
    return (await this.#carryOn(await this.#look(), ticket)) ?? { state: "absent", ticket };
  }

  /** Ends what the ticket has: its service, or its place in line. */
  async leave(ticket: string): Promise<void> {
    const view = await this.#look();
    const service = serviceOf(view, ticket);
    if (service === undefined) await this.#leaveLines(view, ticket);
    else await this.#end(view, service);
  }

  /**
   * Ends the service of a ticket at an agent, and calls the next to this agent.
   *
   * If the agent has another ticket than `done`, nothing changes: so it is when the call is repeated after a lost answer.
   */
  async callNext(agent: number, done: string | undefined): Promise<Served> {
    let view = await this.#look();
    const service = view.services[agent - 1];
    if (service !== undefined && service.owner === done) {
      await this.#end(view, service);
      view = await this.#look();
    }
    // Another agent may be quicker: then the next one in line is called.
    const tried = new Set<string>();
    for (let agentIsTaken = false; !agentIsTaken && this.#isFree(view.services[agent - 1]); ) {
      const next = view.turns.find((ticket) => !tried.has(ticket));
      if (next === undefined) break;
      tried.add(next);
      agentIsTaken = (await this.#serve(view, next, agent)) === "agentIsTaken";
      view = await this.#look();
    }
    const last = view.services[agent - 1];
    return { serving: this.#isFree(last) ? undefined : last?.owner, waiting: view.turns.length };
  }

  /** Shows the department. 1 consistent read for each agent, and 2. */
  async show(): Promise<Queue> {
    const { services, turns } = await this.#look();
    const serving = services.flatMap((service, index) =>
      service === undefined || this.#isFree(service) ? [] : [{ agent: index + 1, ticket: service.owner }],
    );
    return { serving, waiting: turns, mostWaiting: this.#mostWaiting };
  }

  /** The lines first, then the agents: so a ticket on its way from one to the other is seen. */
  async #look(): Promise<View> {
    const standing = await Promise.all(
      this.#lines.map(async (line) => {
        const { holder, waiting } = await line.inspect();
        const first = holder === undefined || this.#isFree(holder) ? [] : [holder.owner];
        return [...first, ...waiting.map(({ owner }) => owner)];
      }),
    );
    const agents = Array.from({ length: this.agents }, (_, index) => agentKey(this.#name, index + 1));
    const services = await Promise.all(agents.map((key) => this.#leases.inspect(key)));
    const served = new Set(services.map((service) => service?.owner));
    const lines = standing.map((tickets) => tickets.filter((ticket) => !served.has(ticket)));
    return { services, standing, lines, turns: lines.flat() };
  }

  /** Whether nobody has it, or its owner is silent: a ticket in its turn takes it over. */
  #isFree(lease: LeaseRecord | undefined): boolean {
    return lease === undefined || lease.expiresAt <= this.#now();
  }

  /** Renews the service or the place of a ticket; undefined where it has neither. */
  async #carryOn(view: View, ticket: string): Promise<Standing | undefined> {
    if (serviceOf(view, ticket) !== undefined) return await this.#serveOn(view, ticket);
    const position = view.turns.indexOf(ticket) + 1;
    if (position === 0) return undefined;
    const served = await this.#takeTurn(view, ticket, position);
    if (served !== undefined) return served;
    const line = view.lines.findIndex((tickets) => tickets.includes(ticket));
    if (await this.#checkIn(line, ticket, false)) return this.#waiting(view, ticket, position);
    // An agent has called it in the meantime, or its time was over.
    return await this.#serveOn(await this.#look(), ticket);
  }

  /** Renews a service; undefined where there is none, or where it has ended. */
  async #serveOn(view: View, ticket: string): Promise<Standing | undefined> {
    const service = serviceOf(view, ticket);
    if (service === undefined) return undefined;
    const own = await this.#leases.inspect(ticketKey(this.#name, ticket));
    // Of another token where the service has ended half-way, or was broken by an operator.
    const leases = own?.token === service.token ? [service, own] : undefined;
    if (leases === undefined || !(await this.#renewed(leases))) {
      await this.#end(view, service);
      return undefined;
    }
    const agent = view.services.indexOf(service) + 1;
    return { state: "serving", ticket, agent, fencingToken: service.fencingToken };
  }

  /** The agent's first: so the ticket's lease never lasts while another ticket has the agent. */
  async #renewed(leases: readonly LeaseRecord[]): Promise<boolean> {
    try {
      for (const lease of leases) await this.#adopt(lease).renew();
      return true;
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      // Ignored: the service has ended, and the answer says so.
      return false;
    }
  }

  /** Ends a service. Its token ends nothing that came later. The ticket's lease first, for the agent's leads to it. */
  async #end(view: View, service: LeaseRecord): Promise<void> {
    await this.#leaveLines(view, service.owner);
    const own = await this.#leases.inspect(ticketKey(this.#name, service.owner));
    if (own?.token === service.token) await this.#adopt(own).release();
    await this.#adopt(service).release();
  }

  #adopt({ seat: _, ...lease }: LeaseRecord): Lease {
    return this.#leases.adopt({ ...lease, tableName: this.#tableName });
  }

  /** Serves a ticket if there is a free agent for its position; undefined if there is none, or no more. */
  async #takeTurn(view: View, ticket: string, position: number): Promise<Standing | undefined> {
    const free = view.services.flatMap((service, index) => (this.#isFree(service) ? [index + 1] : []));
    const agent = free[position - 1];
    const served = agent === undefined ? undefined : await this.#serve(view, ticket, agent);
    return typeof served === "object" ? served : undefined;
  }

  /** Begins a service: 1 transaction. Then the ticket leaves its line. */
  async #serve(
    view: View,
    ticket: string,
    agent: number,
  ): Promise<Standing | "agentIsTaken" | "ticketIsTaken"> {
    const key = agentKey(this.#name, agent);
    try {
      const { fencingToken } = await acquireAll(this.#leases, [key, ticketKey(this.#name, ticket)], {
        owner: ticket,
        leaseDurationMs: this.#rules.silenceMs,
      });
      await this.#leaveLines(view, ticket);
      return { state: "serving", ticket, agent, fencingToken };
    } catch (error) {
      if (!(error instanceof GroupUnavailableError)) throw error;
      return error.held.some((held) => held.key === key) ? "agentIsTaken" : "ticketIsTaken";
    }
  }

  /** Renews a place in line, or joins; tells whether the ticket has one. Rejects with QueueFullError. */
  async #checkIn(line: number, ticket: string, join: boolean): Promise<boolean> {
    const leaseDurationMs = this.#rules.silenceMs;
    const visit = await this.#lines[line]?.checkIn({ owner: ticket, leaseDurationMs, join });
    return visit !== undefined && visit.state !== "absent";
  }

  /** What a ticket has that has just joined: the look after that tells its position, and what came in between. */
  async #joined(ticket: string, line: number): Promise<Standing> {
    const view = await this.#look();
    const served = await this.#serveOn(view, ticket);
    if (served !== undefined) return served;
    const position = view.turns.indexOf(ticket) + 1;
    if (position === 0) return { state: "absent", ticket };
    // The first in line holds the lock, and does not count for it as waiting.
    if ((view.lines[line] ?? []).indexOf(ticket) >= this.#mostWaiting) {
      await this.#leaveLines(view, ticket);
      return this.#refusal(view, line);
    }
    return (await this.#takeTurn(view, ticket, position)) ?? this.#waiting(view, ticket, position);
  }

  async #leaveLines({ standing }: View, ticket: string): Promise<void> {
    const own = this.#lines.filter((_, line) => standing[line]?.includes(ticket));
    await Promise.all(own.map((line) => line.checkOut({ owner: ticket })));
  }

  #waiting(view: View, ticket: string, position: number): Standing {
    return { state: "waiting", ticket, position, estimatedWaitMs: this.#waitMs(view, position) };
  }

  #refusal(view: View, line: number): Standing {
    const waiting = Math.min(view.lines[line]?.length ?? 0, this.#mostWaiting);
    // There is room when the first of this line is served: all appointments go before the first walk-in.
    const first = view.lines.slice(0, line).flat().length + 1;
    const estimatedWaitMs = this.#waitMs(view, first);
    return { state: "refused", waiting, mostWaiting: this.#mostWaiting, estimatedWaitMs };
  }

  /** When so many tickets have come to an agent, if each service takes its usual time; undefined if that is not known. */
  #waitMs({ services }: View, position: number): number | undefined {
    const { usualServiceMs } = this.#rules;
    if (usualServiceMs === undefined) return undefined;
    const now = this.#now();
    const freeIn = services.map((service) =>
      service === undefined || this.#isFree(service)
        ? 0
        : Math.max(0, service.acquiredAt + usualServiceMs - now),
    );
    for (let served = 1; served < position; served += 1) {
      freeIn.sort((one, other) => one - other);
      freeIn.push((freeIn.shift() ?? 0) + usualServiceMs);
    }
    return Math.min(...freeIn);
  }
}

function serviceOf({ services }: View, ticket: string): LeaseRecord | undefined {
  return services.find((service) => service?.owner === ticket);
}
