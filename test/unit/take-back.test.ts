/** An acquisition whose answer was lost ends for good, and takes no more requests than that needs. */
import type { Item, UpdateResult } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { RequestGate } from "../../packages/client/src/protocol/request-gate.ts";
import { takeBack } from "../../packages/client/src/protocol/take-back.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import type { TimedStore } from "../../packages/client/src/store/timed-store.ts";
import { setting } from "../support/recomposed.ts";

const write = (name: string): Write => setting({ pk: name, sk: "lease" }, {});
const ours: Item = { token: "mine" };
const theirs: Item = { token: "theirs" };
const answer = (applied: boolean, item: Item = theirs): UpdateResult => ({ applied, item, retried: false });

/** Takes back with these answers in turn; tells what was sent. */
async function taken(answers: UpdateResult[], revokes = true) {
  const sent: string[] = [];
  const table = {
    update: async ({ key }: Write) => {
      sent.push(key.pk);
      return answers.shift();
    },
  } as unknown as TimedStore;
  const revoke = revokes ? write("revoke") : undefined;
  const isOurs = (item: Item | undefined) => item === ours;
  const result = await takeBack(
    { gate: new RequestGate(new ManualClock()), table },
    { cancel: write("cancel"), revoke, isOurs },
  );
  return { sent, result };
}

describe("an acquisition is taken back", () => {
  it("with one request where its lease is there, or the lock is free", async () => {
    const cancelled = answer(true);
    expect(await taken([cancelled])).toEqual({ sent: ["cancel"], result: cancelled });
  });

  it("with one request where another holds the lock, and no takeover of it is under way", async () => {
    const refused = answer(false);
    expect(await taken([refused], false)).toEqual({ sent: ["cancel"], result: refused });
  });

  it("with two where another holds the lock: its token is revoked", async () => {
    const outcome = await taken([answer(false), answer(true, theirs)]);
    expect(outcome).toEqual({ sent: ["cancel", "revoke"], result: undefined });
  });

  it.each([
    ["its late write has landed in between", answer(true, ours)],
    ["the other's lease has gone in between", answer(false, theirs)],
  ])("with three where %s", async (_, revoked) => {
    const last = answer(true);
    const outcome = await taken([answer(false), revoked, last]);
    expect(outcome).toEqual({ sent: ["cancel", "revoke", "cancel"], result: last });
  });
});
