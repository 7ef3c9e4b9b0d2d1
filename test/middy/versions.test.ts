import { leaseLock } from "@leasehold/middy";
import type middy from "@middy/core";
import middy5 from "middy5";
import { describe, expect, test } from "vitest";
import { bench, type LambdaContext, middies } from "./support.ts";

const oldMiddy = middy5 as unknown as typeof middy;

describe("middy 5, which knows no early answer", () => {
  function setUp(skipResult?: unknown) {
    const b = bench();
    let runs = 0;
    const app = oldMiddy(async () => {
      runs += 1;
      return "done";
    }).use(leaseLock({ ...b.options, whenHeld: "skip", skipResult }));
    return { ...b, app, runs: () => runs };
  }

  test.each([[undefined], ["skipped"], [null]])(
    "is refused where it would run the handler though the lock is held: skipResult %j",
    async (skipResult) => {
      const { app, context, other, runs } = setUp(skipResult);
      await other.acquire("job");
      await expect(app({}, context())).rejects.toMatchObject({
        name: "InvalidOptionsError",
        option: "the version of @middy/core",
      });
      expect(runs()).toBe(0);
    },
  );
});

describe.each(Object.entries(middies))("%s", (_, version) => {
  test("with an internal state that its requests share takes the lock for each of them", async () => {
    const { clock, client, context, holder } = bench();
    const holders: (string | undefined)[] = [];
    const app = version(async () => void holders.push(await holder()), { internal: { shared: true } }).use(
      leaseLock({ client, clock, key: "job" }),
    );
    await app({}, context(1_000, "a") as LambdaContext);
    await app({}, context(1_000, "b") as LambdaContext);
    expect(holders).toEqual(["job/a", "job/b"]);
  });
});
