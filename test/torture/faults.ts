import type { Behaviour, Exchange } from "../support/proxy.ts";
import {
  arriveLate,
  cutAnswer,
  delayAnswer,
  delayRequest,
  failWith,
  hang,
  loseAnswer,
  loseRequest,
  removeDate,
  sendAgain,
  sendTwice,
} from "../support/proxy-behaviours.ts";
import { Random } from "../worlds/random.ts";
import type { Bend } from "./plants.ts";

/** How often each thing has happened. */
export type Tally = Map<string, number>;

export function count(tally: Tally, what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1);
}

/** What may happen to a request: how often beside the others, and how. */
interface Fault {
  readonly name: string;
  readonly share: number;
  behaviour(random: Random): Behaviour;
}

const longestDelayMs = 4_000;
/** Mostly short, now and then longer than a lease. */
const delay = (random: Random): number => longestDelayMs * random.fraction() ** 2;

const faults: readonly Fault[] = [
  { name: "request lost", share: 5, behaviour: loseRequest },
  { name: "answer lost", share: 6, behaviour: loseAnswer },
  { name: "request late", share: 4, behaviour: (random) => delayRequest(delay(random)) },
  { name: "answer late", share: 3, behaviour: (random) => delayAnswer(delay(random)) },
  {
    name: "arrived after its caller was cut off",
    share: 4,
    behaviour: (random) => arriveLate(delay(random)),
  },
  { name: "sent twice", share: 4, behaviour: sendTwice },
  { name: "copy after the answer", share: 10, behaviour: (random) => sendAgain(delay(random)) },
  { name: "answer cut off", share: 2, behaviour: cutAnswer },
  { name: "never answered", share: 1, behaviour: hang },
  { name: "throttled", share: 3, behaviour: () => failWith("ProvisionedThroughputExceededException") },
  { name: "server error", share: 3, behaviour: () => failWith("InternalServerError", 500) },
  { name: "no Date header", share: 2, behaviour: removeDate },
];
const allShares = faults.reduce((sum, { share }) => sum + share, 0);

/** A time in which a share of the requests of one process meets faults. */
interface Spell {
  readonly untilMs: number;
  readonly share: number;
  /** Whether none of its requests gets through, in place of different faults. */
  readonly isCutOff: boolean;
}

function isFoul({ share, isCutOff }: Spell): boolean {
  return isCutOff || share > 0;
}

/**
 * The network of one process: fair and foul by turns, by a seed. Which request meets which fault also depends on the order
 * of the requests, which the machine decides.
 */
export class Weather {
  /** When it is foul, and how much. */
  readonly #spells: Random;
  /** Which request meets what. */
  readonly #draws: Random;
  readonly #tally: Tally;
  readonly #bend: Bend;
  /** Hears whether its requests meet faults from now on. */
  readonly #onTurn: (turn: "foul" | "fair") => void;
  readonly #startedAt: number = performance.now();
  #spell: Spell = { untilMs: 0, share: 0, isCutOff: false };
  #isCalm = false;

  constructor(seed: number, tally: Tally, bend: Bend, onTurn: (turn: "foul" | "fair") => void) {
    this.#spells = new Random(seed);
    this.#draws = new Random(seed + 1);
    this.#tally = tally;
    this.#bend = bend;
    this.#onTurn = onTurn;
  }

  /** Whether its requests met faults when the last one was sent. */
  get isFoul(): boolean {
    return !this.#isCalm && isFoul(this.#spell);
  }

  /** Ends the faults. Copies that are under way still arrive, within a few seconds. */
  calm(): void {
    this.#isCalm = true;
    if (isFoul(this.#spell)) this.#onTurn("fair");
  }

  /** Treats one request. */
  readonly behaviour: Behaviour = async (exchange) => {
    const bent: Exchange = {
      ...exchange,
      forward: (body = exchange.request.body) =>
        exchange.forward(this.#bend(exchange.request.operation, body)),
    };
    count(this.#tally, "requests");
    const fault = this.#isCalm ? undefined : this.#draw();
    if (fault === undefined) return bent.reply(await bent.forward());
    count(this.#tally, fault.name);
    await fault.behaviour(this.#draws)(bent);
  };

  #draw(): Fault | undefined {
    const [spells, draws] = [this.#spells, this.#draws];
    const nowMs = performance.now() - this.#startedAt;
    const wasFoul = isFoul(this.#spell);
    while (this.#spell.untilMs < nowMs) {
      const untilMs = this.#spell.untilMs + spells.between(500, 4_000);
      this.#spell = { untilMs, share: spells.pick([0, 0.05, 0.15, 0.4]), isCutOff: spells.chance(0.08) };
    }
    const { share, isCutOff } = this.#spell;
    if (wasFoul !== isFoul(this.#spell)) this.#onTurn(wasFoul ? "fair" : "foul");
    if (isCutOff) return cutOff;
    if (!draws.chance(share)) return undefined;
    let drawn = draws.between(0, allShares);
    return faults.find((each) => {
      drawn -= each.share;
      return drawn < 0;
    });
  }
}

const cutOff: Fault = { name: "cut off from everything", share: 0, behaviour: loseRequest };
