/** A ticket that is in service or waits for it. */
export interface Ticket {
  readonly ticket: string;
  readonly owner: string;
  /** Epoch milliseconds. */
  readonly enteredAt: number;
}

/** A department's desk. */
export interface Desk {
  readonly serving: Ticket | undefined;
  /** The one that comes next is first. */
  readonly waiting: readonly Ticket[];
  /** When each ticket was last heard of, in epoch milliseconds. */
  readonly seen: Readonly<Record<string, number>>;
}

/** A desk at which nobody has been yet. */
export const emptyDesk: Desk = { serving: undefined, waiting: [], seen: {} };

/** How a department admits tickets. */
export interface AdmissionRules {
  readonly mostWaiting: number;
  /** After this much silence, in milliseconds, a ticket counts as gone. */
  readonly silenceMs: number;
}

/** Where a ticket stands. */
export type Standing =
  | { readonly state: "serving"; readonly ticket: string }
  /** `position` is 1 for the one that comes next. */
  | { readonly state: "waiting"; readonly ticket: string; readonly position: number }
  /** The queue is full; nothing was changed. */
  | { readonly state: "refused"; readonly waiting: number; readonly mostWaiting: number }
  /** Another owner has a ticket of this name; nothing was changed. */
  | { readonly state: "taken"; readonly ticket: string }
  /** It is neither in service nor waiting: it left, was done, or was silent for too long. */
  | { readonly state: "absent"; readonly ticket: string };

/** What a change leads to. */
export interface Transition<T> {
  readonly desk: Desk;
  readonly answer: T;
}

/**
 * Lets a ticket in: into service when nobody is, into the queue when there is room, and otherwise not at all.
 *
 * An owner has one place. Who comes again keeps it, and hears under which ticket and where it stands.
 */
export function enter(
  desk: Desk,
  rules: AdmissionRules,
  { ticket, owner }: Pick<Ticket, "ticket" | "owner">,
  now: number,
): Transition<Standing> {
  const live = withoutSilent(desk, rules, now);
  const own = all(live).find((other) => other.owner === owner);
  if (own !== undefined) {
    const kept = heard(live, own.ticket, now);
    return { desk: kept, answer: standing(kept, own.ticket) };
  }
  if (all(live).some((other) => other.ticket === ticket))
    return { desk: live, answer: { state: "taken", ticket } };
  if (live.serving !== undefined && live.waiting.length >= rules.mostWaiting) {
    const answer = {
      state: "refused",
      waiting: live.waiting.length,
      mostWaiting: rules.mostWaiting,
    } as const;
    return { desk: live, answer };
  }
  const waiting = [...live.waiting, { ticket, owner, enteredAt: now }];
  const entered = promoted(heard({ ...live, waiting }, ticket, now));
  return { desk: entered, answer: standing(entered, ticket) };
}

/** Lets a ticket go, from the queue or from service. Leaving again changes nothing. */
export function leave(desk: Desk, rules: AdmissionRules, ticket: string, now: number): Transition<Standing> {
  const rest = without(withoutSilent(desk, rules, now), (other) => other.ticket === ticket);
  return { desk: promoted(rest), answer: { state: "absent", ticket } };
}

/** Who is in service now. */
export interface Served {
  readonly serving: string | undefined;
  readonly waiting: number;
}

/**
 * Ends the service of one ticket, and takes the next.
 *
 * It says whose service ends: asked again after a lost answer it finds another in service, and changes nothing.
 */
export function next(
  desk: Desk,
  rules: AdmissionRules,
  done: string | undefined,
  now: number,
): Transition<Served> {
  const live = withoutSilent(desk, rules, now);
  const isTheirs = live.serving !== undefined && live.serving.ticket === done;
  return served(promoted(isTheirs ? without(live, ({ ticket }) => ticket === done) : live));
}

/** Takes off the tickets that have been silent for too long. */
export function clean(
  desk: Desk,
  rules: AdmissionRules,
  now: number,
): Transition<Served & { readonly removed: number }> {
  const { desk: cleaned, answer } = served(withoutSilent(desk, rules, now));
  return { desk: cleaned, answer: { ...answer, removed: all(desk).length - all(cleaned).length } };
}

/** Says where a ticket stands. */
export function standing(desk: Desk, ticket: string): Standing {
  if (desk.serving?.ticket === ticket) return { state: "serving", ticket };
  const place = desk.waiting.findIndex((other) => other.ticket === ticket);
  if (place === -1) return { state: "absent", ticket };
  return { state: "waiting", ticket, position: place + 1 };
}

function served(desk: Desk): Transition<Served> {
  return { desk, answer: { serving: desk.serving?.ticket, waiting: desk.waiting.length } };
}

function all({ serving, waiting }: Desk): readonly Ticket[] {
  return serving === undefined ? waiting : [serving, ...waiting];
}

function heard(desk: Desk, ticket: string, now: number): Desk {
  return { ...desk, seen: { ...desk.seen, [ticket]: Math.max(now, lastHeard(desk, ticket)) } };
}

/** People name their tickets as they like, also "constructor". */
function lastHeard({ seen }: Desk, ticket: string): number {
  return Object.hasOwn(seen, ticket) ? (seen[ticket] ?? 0) : 0;
}

function withoutSilent(desk: Desk, { silenceMs }: AdmissionRules, now: number): Desk {
  return promoted(without(desk, ({ ticket }) => now - lastHeard(desk, ticket) > silenceMs));
}

function without(desk: Desk, isGone: (ticket: Ticket) => boolean): Desk {
  const { serving } = desk;
  const waiting = desk.waiting.filter((ticket) => !isGone(ticket));
  const stays = { serving: serving === undefined || isGone(serving) ? undefined : serving, waiting };
  const seen = all({ ...stays, seen: {} }).map(({ ticket }) => [ticket, lastHeard(desk, ticket)]);
  return { ...stays, seen: Object.fromEntries(seen) };
}

/** First come, first served. */
function promoted(desk: Desk): Desk {
  const [first, ...rest] = desk.waiting;
  return desk.serving !== undefined || first === undefined
    ? desk
    : { ...desk, serving: first, waiting: rest };
}
