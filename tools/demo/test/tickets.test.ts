import { describe, expect, it } from "vitest";
import type { Standing } from "../../../functions/admit-tickets/department.ts";
import {
  type Arrival,
  type Fate,
  type Inquiry,
  judgeTickets,
  type TicketsEvidence,
} from "../scenarios/tickets-audit.ts";
import { at, type Mutable, testsOfAudit } from "./evidence.ts";

function comes(department: string, ticket: string, fate: Fate): Arrival {
  return { department, ticket, fate };
}

const serving = (ticket: string): Standing => ({ state: "serving", ticket, agent: 1, fencingToken: 1 });
const waiting = (ticket: string, position: number): Standing => ({
  state: "waiting",
  ticket,
  position,
  estimatedWaitMs: undefined,
});
const refused = (length: number): Standing => ({ state: "refused", waiting: length, mostWaiting: 3 });

function asked(
  department: string,
  ticket: string,
  sentAt: number,
  answer: Inquiry["answer"],
  action: Inquiry["action"] = "heartbeat",
): Inquiry {
  return { department, ticket, action, sentAt, answeredAt: sentAt + 10, answer };
}

/** L1 to L4 at loans, where L2 dies in the queue and L5 is refused; at cards K1 dies in service, and K2 is next. */
function rightEvidence(): TicketsEvidence {
  const done = { serving: undefined, waiting: 0 };
  return {
    arrivals: [
      comes("loans", "L1", "served"),
      comes("loans", "L2", "diesWaiting"),
      comes("loans", "L3", "served"),
      comes("loans", "L4", "leaves"),
      comes("loans", "L5", "refused"),
      comes("cards", "K1", "diesServing"),
      comes("cards", "K2", "served"),
    ],
    mostWaiting: 3,
    silenceMs: 3000,
    inquiries: [
      asked("loans", "L1", 0, serving("L1"), "enter"),
      asked("loans", "L2", 20, waiting("L2", 1), "enter"),
      asked("loans", "L3", 40, waiting("L3", 2), "enter"),
      asked("loans", "L4", 60, waiting("L4", 3), "enter"),
      asked("loans", "L5", 80, refused(3), "enter"),
      asked("cards", "K1", 0, serving("K1"), "enter"),
      asked("cards", "K2", 20, waiting("K2", 1), "enter"),
      asked("loans", "L3", 400, waiting("L3", 2)),
      asked("loans", "L4", 450, { state: "absent", ticket: "L4" }, "leave"),
      asked("loans", "L1", 500, done, "next"),
      asked("cards", "K1", 500, serving("K1")),
      asked("cards", "K2", 2000, waiting("K2", 1)),
      asked("loans", "L3", 3100, serving("L3")),
      asked("loans", "L3", 3500, done, "next"),
      asked("cards", "K2", 3600, serving("K2")),
      asked("cards", "K2", 4000, done, "next"),
    ],
    enteredAgain: { ticket: "L3", answer: waiting("L3", 2) },
    leftBehind: { ticket: "K9", removed: 1, answer: { state: "absent", ticket: "K9" } },
  };
}

/** The inquiries of a ticket. */
function of(evidence: Mutable<TicketsEvidence>, ticket: string): Mutable<Inquiry>[] {
  return evidence.inquiries.filter((one) => one.ticket === ticket);
}

describe("the audit of the tickets", () => {
  const { redIn, spoilt } = testsOfAudit<TicketsEvidence>(judgeTickets, rightEvidence, {
    "a ticket that was never served": [
      (e) => Object.assign(e, { inquiries: e.inquiries.filter(({ ticket }) => ticket !== "K2") }),
      "order of service at cards",
      "the next one, after a death in service",
    ],
    "a ticket that was served before its turn": [
      (e) => Object.assign(at(of(e, "L3"), 0), { sentAt: -50, answeredAt: -40, answer: serving("L3") }),
      "order of service at loans",
      "services that overlapped in one department",
      "a ticket that enters twice has one place",
      "tickets that fell back in the queue",
    ],
    "one that died in the queue, and was served": [
      (e) => e.inquiries.push(asked("loans", "L2", 4000, serving("L2")) as Mutable<Inquiry>),
      "order of service at loans",
    ],
    "two in service at a time": [
      (e) => Object.assign(at(of(e, "L3"), 1), { answeredAt: 499, answer: serving("L3") }),
      "services that overlapped in one department",
    ],
    "a successor that came before the dead one's silence was over": [
      (e) => Object.assign(at(of(e, "K2"), 2), { answeredAt: 3499 }),
      "services that overlapped in one department",
      "the next one, after a death in service",
    ],
    "departments that waited for each other": [
      (e) => {
        for (const one of e.inquiries.filter(({ department }) => department === "cards")) {
          one.sentAt += 10_000;
          one.answeredAt += 10_000;
        }
      },
      "departments that served at the same time",
    ],
    "a ticket that got in beyond the bound": [
      (e) => Object.assign(at(of(e, "L5"), 0), { answer: waiting("L5", 4) }),
      "tickets refused, with the queue's true length",
    ],
    "a refusal with a wrong length": [
      (e) => Object.assign(at(of(e, "L5"), 0), { answer: refused(2) }),
      "tickets refused, with the queue's true length",
    ],
    "a ticket that was refused though there was room": [
      (e) => Object.assign(at(of(e, "L4"), 0), { answer: refused(3) }),
      "living tickets that were not known any more",
    ],
    "a second place for one ticket": [
      (e) => Object.assign(e.enteredAgain, { answer: waiting("L3", 4) }),
      "a ticket that enters twice has one place",
    ],
    "a ticket that fell back": [
      (e) => Object.assign(at(of(e, "L3"), 1), { answer: waiting("L3", 3) }),
      "tickets that fell back in the queue",
    ],
    "a living ticket that was taken off": [
      (e) => Object.assign(at(of(e, "L3"), 1), { answer: { state: "absent", ticket: "L3" } }),
      "living tickets that were not known any more",
    ],
    "a cleaner that took nobody off": [
      (e) => Object.assign(e.leftBehind, { removed: 0, answer: serving("K9") }),
      "tickets that the cleaner took off",
      "what is said of it then",
    ],
  });

  it("counts", () => {
    expect(judgeTickets(rightEvidence()).inShort).toMatch(
      /^3 tickets served .*, 1 refused, 2 dead passed over, 16 questions$/,
    );
  });

  it("counts a service no longer than its owner could be sure of it", () => {
    // L1 had no time for longer than the silence: L3 was served meanwhile, and L1 learns of it afterwards.
    const evidence = spoilt((e) => {
      Object.assign(at(of(e, "L1"), 1), { sentAt: 6000, answeredAt: 6010 });
      e.inquiries.push(asked("loans", "L1", 5900, { state: "absent", ticket: "L1" }) as Mutable<Inquiry>);
    });
    expect(redIn(evidence)).not.toContain("services that overlapped in one department");
  });

  it("says which living ticket was silent for so long that it may have counted as gone", () => {
    const silent = spoilt((e) => {
      e.inquiries = e.inquiries.filter(({ ticket, sentAt }) => ticket !== "K2" || sentAt !== 2000);
    });
    expect(judgeTickets(silent).late).toEqual([
      expect.stringMatching(/^K2 was not heard of for up to 3\.6 s, where 3\.0 s of silence count as gone$/),
    ]);
  });
});
