/**
 * The lock's protocol as plain transitions: clients whose wall clocks are wrong, requests that are lost, doubled and late,
 * answers that never come, ttl, and an operator. The writes themselves are the table in writes.ts.
 */
import type { Step, System } from "./explore.ts";
import { absent, guards, type Item, type Row, type Sent, type WriteName, writes } from "./writes.ts";

/** How far the model goes, and what is promised to it. Times are ticks. */
export interface Setting {
  /** How far each client's wall clock is ahead of the service's. */
  readonly ahead: readonly number[];
  /** How often each client begins to acquire; it asks once more each time. */
  readonly attempts: readonly number[];
  /** How often each renews a lease. */
  readonly renewals: readonly number[];
  /** How many copies of requests are late in all: the only one, or one more. All others land at once, or never. */
  readonly strays: number;
  /** How often clients write an item of their own with their fencing token. */
  readonly fencedWrites: number;
  /** How often an operator breaks a lease. */
  readonly breaks: number;
  readonly lastTick: number;
  readonly leaseTicks: number;
  /** The allowance for skew, `clockSkewMs`. */
  readonly skew: number;
  /** A copy lands at most so long after it was sent. */
  readonly longestDelay: number;
  /** `retentionMs`: longer than a request is under way and than clocks are wrong. */
  readonly retention: number;
}

/** What a client goes by. Mistakes are planted here and in the writes. */
export interface Rules {
  readonly writes: Readonly<Record<WriteName, Row>>;
  readonly stillHeld: typeof guards.stillHeld | readonly Row["when"][number][];
  readonly noLaterHolder: (written: number, fence: number) => boolean;
  /** Until when a holder believes in its lease, in the service's time: core/deadline.ts, service-clock.ts. */
  readonly believedUntil: (lease: {
    readonly expiresAt: number;
    readonly sentAt: number;
    readonly now: number;
    readonly setting: Setting;
  }) => number;
  /** Whether a record that an answer shows may be taken over: core/expiry-detector.ts. */
  readonly isExpired: (record: {
    readonly expiresAt: number;
    /** When an answer has first shown it as it is. */
    readonly since: number;
    readonly now: number;
    readonly ahead: number;
    readonly setting: Setting;
  }) => boolean;
}

/** The rules as they are. */
export const rules: Rules = {
  writes,
  stillHeld: guards.stillHeld,
  noLaterHolder: guards.noLaterHolder.holds,
  believedUntil: ({ expiresAt, sentAt, setting }) =>
    Math.min(sentAt + setting.leaseTicks, expiresAt + setting.skew),
  isExpired: ({ expiresAt, since, now, setting }) =>
    now > expiresAt + setting.skew || now - since >= setting.leaseTicks,
};

/** A copy of a request, under way. */
interface Message extends Sent {
  readonly by: number;
  readonly write: WriteName;
  readonly sentAt: number;
  /** Whether its sender still waits for the answer. */
  readonly isAwaited: boolean;
}

interface Client {
  /** `asking`: without an answer yet. `cancelling`, `revoking`: there was none, and it takes its acquisition back. */
  readonly phase: "idle" | "asking" | "refused" | "holding" | "cancelling" | "revoking";
  /** How often it has begun to acquire; its token is made of that. */
  readonly attempt: number;
  /** How many writes of this token it has sent: each has its own version. */
  readonly version: number;
  readonly renewals: number;
  /** What proves its latest lease, released or not. */
  readonly proof: { readonly token: string; readonly fence: number } | undefined;
  readonly believesUntil: number;
  /** The record that is in its way. */
  readonly sees:
    | {
        readonly token: string;
        readonly version: number;
        readonly fence: number;
        readonly since: number;
        readonly isExpired: boolean;
      }
    | undefined;
  /** Whether it has asked to take another's place with this token. */
  readonly hasPassed: boolean;
  /** Whether an operator has ended its lease: who does that answers for two believers. */
  readonly isBroken: boolean;
}

/** One moment of everything. */
export interface State {
  readonly now: number;
  readonly item: Item | undefined;
  readonly clients: readonly Client[];
  readonly network: readonly Message[];
  readonly breaks: number;
  readonly strays: number;
  readonly fencedWrites: number;
  /** The highest fencing token that was ever granted, and whether its lease is over. */
  readonly granted: number;
  readonly isOver: boolean;
  /** The token that was released, cancelled, revoked or broken last. */
  readonly revoked: string | undefined;
  /** The fencing token that the user's fenced item remembers. */
  readonly written: number;
  /** What has gone wrong in a step. */
  readonly fault: string | undefined;
}

/** Told of every write that lands: with the item before it, and after it where it was accepted. */
export type Witness = (
  name: WriteName,
  item: Item | undefined,
  sent: Sent,
  after: Item | undefined,
) => string | undefined;

const nameOf = (client: number): string => "ABC"[client] ?? "?";

/** The lock under a setting, for {@link explore}. */
export class LockModel implements System<State> {
  readonly start: State;
  readonly #setting: Setting;
  readonly #rules: Rules;
  readonly #witness: Witness;

  constructor(setting: Setting, rulesInForce: Rules = rules, witness: Witness = () => undefined) {
    this.#setting = setting;
    this.#rules = rulesInForce;
    this.#witness = witness;
    const client: Client = {
      ...{ phase: "idle", attempt: 0, version: 0, renewals: 0, proof: undefined, believesUntil: 0 },
      ...{ sees: undefined, hasPassed: false, isBroken: false },
    };
    this.start = {
      ...{ now: 0, item: undefined, clients: setting.ahead.map(() => client), network: [] },
      ...{
        breaks: 0,
        strays: 0,
        fencedWrites: 0,
        granted: Number.NEGATIVE_INFINITY,
        isOver: true,
        revoked: undefined,
        written: Number.NEGATIVE_INFINITY,
        fault: undefined,
      },
    };
  }

  steps(state: State): readonly Step<State>[] {
    const steps: Step<State>[] = [];
    for (const client of state.clients.keys()) steps.push(...this.#stepsOf(state, client));
    for (const message of state.network) steps.push(...this.#arrivals(state, message));
    steps.push(...this.#interventions(state));
    if (state.item?.ttl !== undefined && state.now > state.item.ttl)
      steps.push({ says: "ttl removes the item", to: { ...state, item: undefined, revoked: undefined } });
    if (state.now < this.#setting.lastTick) steps.push({ says: "time goes on", to: this.#later(state) });
    return steps;
  }

  /** What must never be: the invariants. */
  wrongIn({ now, item, clients, granted, isOver, fault }: State): string | undefined {
    if (fault !== undefined) return fault;
    if (item !== undefined && item.ttl === undefined) return "an item would stay in the table for ever";
    const isStanding = item?.token !== undefined;
    if (isStanding && (item.fence !== granted || isOver)) return "a lease that was over is there again";
    const believers = clients.filter(
      ({ phase, believesUntil, isBroken }) => phase === "holding" && now < believesUntil && !isBroken,
    );
    if (believers.length > 1) return "two clients believe to hold the lock";
    for (const { proof } of believers) {
      if (item?.token !== proof?.token || item?.fence !== proof?.fence)
        return "a client believes in a lease that the table does not show";
    }
    for (const { proof } of clients) {
      if (proof === undefined || !this.#isStillHeld(item, proof)) continue;
      if (item?.token !== proof.token || item.fence !== proof.fence)
        return "a write on condition of a lease would land after that lease";
    }
    return undefined;
  }

  textOf({ clients, network, item, ...rest }: State): string {
    const members = clients.map(textOf).join("|");
    return `${Object.values(rest)}|${textOf(item)}|${members}|${network.map(textOf).sort().join("|")}`;
  }

  /** What a client can do by itself. */
  #stepsOf(state: State, index: number): readonly Step<State>[] {
    const client = state.clients[index] as Client;
    const steps: Step<State>[] = [];
    const name = nameOf(index);
    const may = (says: string, to: State): unknown => steps.push({ says: `${name} ${says}`, to });
    const sends = (write: WriteName, change: Partial<Client>, isAwaited = true): unknown =>
      steps.push(
        ...this.#send(this.#with(this.#unawaited(state, index), index, change), index, write, isAwaited),
      );
    const isWaiting = state.network.some(({ by, isAwaited }) => by === index && isAwaited);
    const leaves: Partial<Client> = { phase: "idle", believesUntil: 0 };

    switch (client.phase) {
      case "idle":
        if (client.attempt >= (this.#setting.attempts[index] ?? 0)) break;
        sends("acquire", {
          ...{ phase: "asking", attempt: client.attempt + 1, version: 1, renewals: 0 },
          ...{ sees: undefined, hasPassed: false, isBroken: false },
        });
        break;
      case "asking":
        may("has no answer", this.#with(this.#unawaited(state, index), index, { phase: "cancelling" }));
        break;
      case "refused": {
        const asks: Partial<Client> = { phase: "asking", version: client.version + 1 };
        if (client.version < 2) sends("acquire", asks);
        if (client.sees?.isExpired) sends("takeOver", { ...asks, hasPassed: true });
        may("gives up", this.#with(state, index, leaves));
        break;
      }
      case "holding":
        if (client.renewals < (this.#setting.renewals[index] ?? 0))
          sends("renew", { version: client.version + 1, renewals: client.renewals + 1 });
        sends("release", leaves, false);
        may("stops without a release", this.#with(this.#unawaited(state, index), index, leaves));
        break;
      case "cancelling":
        if (!isWaiting) sends("cancel", {});
        may("gives up", this.#with(this.#unawaited(state, index), index, leaves));
        break;
      case "revoking":
        if (!isWaiting) sends("revokeToken", {});
        may("gives up", this.#with(this.#unawaited(state, index), index, leaves));
        break;
    }
    if (client.proof !== undefined && state.fencedWrites < this.#setting.fencedWrites) {
      const { fence } = client.proof;
      const { written } = state;
      const fault = fence < written ? "a fenced write landed after that of a later holder" : undefined;
      const fencedWrites = state.fencedWrites + 1;
      if (this.#rules.noLaterHolder(written, fence))
        may(`writes with ${fence}`, { ...state, written: fence, fencedWrites, fault });
    }
    return steps;
  }

  /** An operator ends the lease that the table shows. */
  #interventions(state: State): readonly Step<State>[] {
    const { item, breaks, now } = state;
    if (item?.token === undefined || breaks >= this.#setting.breaks) return [];
    const order = { ...this.#sent(state, 0), by: -1, token: item.token, at: now, isAwaited: false };
    return this.#dispatch({ ...state, breaks: breaks + 1 }, { ...order, write: "breakLease" });
  }

  #send(state: State, index: number, write: WriteName, isAwaited: boolean): readonly Step<State>[] {
    return this.#dispatch(state, { ...this.#sent(state, index), write, isAwaited });
  }

  /** A request lands at once, never or later. */
  #dispatch(state: State, message: Message): readonly Step<State>[] {
    const what = `${message.write} of ${message.token}`;
    const steps = [{ says: `${what} is sent and lost`, to: state }, ...this.#arrivals(state, message)];
    if (state.strays >= this.#setting.strays) return steps;
    const network = [...state.network, message];
    return [
      ...steps,
      { says: `${what} is sent and slow`, to: { ...state, strays: state.strays + 1, network } },
    ];
  }

  #sent({ clients, now }: State, index: number): Omit<Message, "write" | "isAwaited"> {
    const { leaseTicks, retention, ahead } = this.#setting;
    const { attempt, version, proof, sees } = clients[index] as Client;
    const at = now + (ahead[index] ?? 0);
    return {
      ...{ by: index, token: `${nameOf(index)}${attempt}`, version, fence: proof?.fence ?? 0 },
      ...{
        at,
        expiresAt: at + leaseTicks,
        judged: {
          ...{ token: sees?.token ?? "", version: sees?.version ?? 0 },
          fencingToken: sees?.fence ?? 0,
        },
      },
      ...{ retention, sentAt: now },
    };
  }

  /** A copy reaches the table, and perhaps once more later. Its answer reaches the sender at once, or never: a later one finds less to believe in. */
  #arrivals(state: State, message: Message): readonly Step<State>[] {
    const { write, token, isAwaited } = message;
    const { item } = state;
    const row = this.#rules.writes[write];
    const isAccepted = row.when.every(({ holds }) => holds(item ?? absent, message));
    const after = isAccepted ? row.gives(item ?? absent, message) : undefined;
    const difference = this.#witness(write, item, message, after);
    const rest = { ...state, network: state.network.filter((one) => one !== message) };
    const says = `${write} of ${token} arrives and is ${isAccepted ? "accepted" : "refused"}`;
    const steps: Step<State>[] = [];
    for (const left of [rest, ...this.#doubled(rest, message)]) {
      const landed = this.#landed({ ...left, item: after ?? item }, message, item, after);
      const fault = difference ?? landed.fault;
      if (isAwaited) steps.push({ says, to: { ...this.#answered(landed, message, after), fault } });
      steps.push({ says: `${says}, unanswered`, to: { ...landed, fault } });
    }
    return steps;
  }

  /** One more copy is under way, for which nobody waits. */
  #doubled(state: State, message: Message): readonly State[] {
    if (state.strays >= this.#setting.strays) return [];
    const network = [...state.network, { ...message, isAwaited: false }];
    return [{ ...state, strays: state.strays + 1, network }];
  }

  /** What a write that was accepted means for all that went before. */
  #landed(
    state: State,
    { write, token, fence }: Message,
    item: Item | undefined,
    after: Item | undefined,
  ): State {
    if (after === undefined) return state;
    const wasMine = item?.token === token && item.fence === fence;
    if ((write === "renew" || write === "release") && !wasMine)
      return { ...state, fault: `a stale write changed the item: ${write} of ${token}` };
    if (write === "acquire" || write === "takeOver") {
      const grown = (after.fence ?? 0) > state.granted;
      const revoked = state.revoked === token;
      const what = grown ? revoked && "a revoked token was granted" : "a fencing token did not grow";
      return { ...state, granted: after.fence ?? 0, isOver: false, fault: what || undefined };
    }
    const ended = write === "renew" ? state : { ...state, revoked: token };
    if (item?.token === undefined || after.token !== undefined) return ended;
    if (write !== "breakLease") return { ...ended, isOver: true };
    const clients = state.clients.map((client) =>
      client.proof?.token === token ? { ...client, isBroken: true } : client,
    );
    return { ...ended, clients, isOver: true };
  }

  /** What the sender makes of its answer: as core/attempt.ts and held-lease.ts do. */
  #answered(state: State, message: Message, after: Item | undefined): State {
    const { by, write, token, version, fence } = message;
    const { item, now } = state;
    const client = state.clients[by] as Client;
    // Its own token in a refusal: an earlier copy has landed.
    const isOurs = item?.token === token;
    switch (write) {
      case "acquire":
      case "takeOver":
        if (isOurs) return this.#holding(state, by, item);
        if (item?.token === undefined) return this.#with(state, by, { phase: "idle" });
        return this.#with(state, by, { phase: "refused", sees: this.#observation(client, item, now, by) });
      case "renew":
        if (isOurs && item.fence === fence && (item.version ?? 0) >= version)
          return this.#holding(state, by, item);
        return this.#with(state, by, { phase: "idle", believesUntil: 0 });
      case "cancel":
        return this.#with(state, by, {
          phase: after === undefined && client.hasPassed ? "revoking" : "idle",
        });
      case "revokeToken":
        if (after !== undefined && !isOurs) return this.#with(state, by, { phase: "idle" });
        return this.#with(state, by, { phase: "cancelling", hasPassed: false });
      default:
        return state;
    }
  }

  #holding(state: State, index: number, item: Item): State {
    const { leaseTicks, ahead } = this.#setting;
    const expiresAt = item.expiresAt ?? 0;
    const sentAt = expiresAt - leaseTicks - (ahead[index] ?? 0);
    const lease = { expiresAt, sentAt, now: state.now, setting: this.#setting };
    return this.#with(state, index, {
      phase: "holding",
      proof: { token: item.token ?? "", fence: item.fence ?? 0 },
      believesUntil: this.#rules.believedUntil(lease),
      sees: undefined,
    });
  }

  #observation({ sees }: Client, item: Item, now: number, index: number): Client["sees"] {
    const { token = "", version = 0, fence = 0, expiresAt = 0 } = item;
    const since = sees?.token === token && sees.version === version ? sees.since : now;
    const ahead = this.#setting.ahead[index] ?? 0;
    const record = { expiresAt, since, now, ahead, setting: this.#setting };
    return { token, version, fence, since, isExpired: this.#rules.isExpired(record) };
  }

  #isStillHeld(item: Item | undefined, { token, fence }: NonNullable<Client["proof"]>): boolean {
    const sent = { token, fence } as Sent;
    return this.#rules.stillHeld.every(({ holds }) => holds(item ?? absent, sent));
  }

  #later(state: State): State {
    const now = state.now + 1;
    const network = state.network.filter(({ sentAt }) => now - sentAt <= this.#setting.longestDelay);
    return { ...state, now, network };
  }

  #with(state: State, index: number, change: Partial<Client>): State {
    return {
      ...state,
      clients: state.clients.with(index, { ...(state.clients[index] as Client), ...change }),
    };
  }

  /** It does not wait for an answer any more. */
  #unawaited(state: State, index: number): State {
    const isMeant = ({ by, isAwaited }: Message): boolean => by === index && isAwaited;
    if (!state.network.some(isMeant)) return state;
    const network = state.network.map((one) => (isMeant(one) ? { ...one, isAwaited: false } : one));
    return { ...state, network };
  }
}

/** Parts of a state are shared by many, and never change. */
const texts = new WeakMap<object, string>();

function textOf(part: object | undefined): string {
  if (part === undefined) return "-";
  let text = texts.get(part);
  if (text === undefined) {
    text = Object.values(part)
      .map((value) => (typeof value === "object" ? textOf(value) : value))
      .join();
    texts.set(part, text);
  }
  return text;
}
