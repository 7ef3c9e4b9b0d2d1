/** What one request of the light store leaves for the next one. */
import { getEventListeners } from "node:events";
import { type LightCredentials, lightStore } from "@leasehold/client/light";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { refuse, type ScriptedServer, say, startScriptedServer } from "../support/scripted-server.ts";

let server: ScriptedServer;

beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.close());
beforeEach(() => server.script(say({})));

function newStore(credentials: () => Promise<LightCredentials>) {
  const store = lightStore({
    tableName: "leases",
    region: "eu-central-1",
    endpoint: server.url,
    credentials,
  });
  onTestFinished(() => store.destroy());
  const get = (signal = new AbortController().signal) =>
    store.get({ key: { pk: "k", sk: "lease" }, consistent: true }, { signal, isCurrent: () => true });
  return Object.assign(get, { store });
}

it("an expired session is left for the next one of the same access key", async () => {
  const tokens = ["first", "second"];
  const get = newStore(async () => ({
    accessKeyId: "AK",
    secretAccessKey: "s",
    sessionToken: tokens.shift() ?? "last",
  }));
  server.script(refuse("ExpiredTokenException"), say({}));
  await get();
  expect(server.requests.map(({ headers }) => headers["x-amz-security-token"])).toEqual(["first", "second"]);
});

it("nothing listens to the caller's signal any more", async () => {
  const get = newStore(async () => ({ accessKeyId: "AK", secretAccessKey: "s" }));
  const { signal } = new AbortController();
  for (let request = 0; request < 3; request += 1) await get(signal);
  server.script(refuse("AccessDeniedException"));
  await expect(get(signal)).rejects.toMatchObject({ code: "LEASE_ACCESS_DENIED" });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("a call that was ended leaves no connection, nor does a store that was closed", async () => {
  const get = newStore(async () => ({ accessKeyId: "AK", secretAccessKey: "s" }));
  const arrived = Promise.withResolvers<void>();
  const closed = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  server.script(
    (response) => {
      response.on("close", () => closed[0]?.resolve());
      arrived.resolve();
    },
    (response, request) => {
      response.socket?.on("close", () => closed[1]?.resolve());
      say({})(response, request);
    },
  );
  const controller = new AbortController();
  const ended = get(controller.signal).catch(() => undefined);
  await arrived.promise;
  controller.abort();
  await Promise.all([ended, closed[0]?.promise]);
  await get();
  get.store.destroy();
  await closed[1]?.promise;
});
