import { anyRequest, type Behaviour, startProxy, type Target } from "../../test/support/proxy.ts";
import { sdkClient, type TestTable } from "../../test/support/table.ts";

/** What one operation sent, and what that consumed. */
export interface OperationCost {
  readonly operation: string;
  /** The names of its requests. */
  readonly sent: readonly string[];
  /** How many of them were refused by their condition. */
  readonly refused: number;
  /** Such as `1 W`. */
  readonly capacity: string;
}

/** Counts each operation's requests on the wire, and asks the engine what they consumed. */
export async function benchRequests(engine: Target, leases: TestTable): Promise<OperationCost[]> {
  const proxy = await startProxy(engine);
  const dynamodb = sdkClient(proxy);
  const client = leases.client({ dynamodb });
  const costs: OperationCost[] = [];
  let consumed = 0;
  let refused = 0;

  // The client does not ask for it: the question is added on the way.
  const askForCapacity: Behaviour = async (exchange) => {
    const answer = await exchange.forward({ ...exchange.request.body, ReturnConsumedCapacity: "TOTAL" });
    const { ConsumedCapacity } = JSON.parse(answer.body);
    if (ConsumedCapacity === undefined) refused += 1;
    else consumed += ConsumedCapacity.CapacityUnits;
    exchange.reply(answer);
  };
  const measure = async <T>(operation: string, run: () => Promise<T>): Promise<T> => {
    consumed = 0;
    refused = 0;
    proxy.reset();
    proxy.always(anyRequest, askForCapacity);
    const result = await run();
    const isRead = proxy.count("GetItem") > 0;
    costs.push({
      operation,
      sent: proxy.operations,
      refused,
      capacity: `${consumed + refused} ${isRead ? "read" : "write"}`,
    });
    return result;
  };

  const key = leases.newKey();
  const first = await measure("acquire a lock that never was", () => client.acquire(key));
  await measure("renew", () => first.renew());
  await measure("inspect", () => client.inspect(key));
  await measure("release", () => first.release());
  const second = await measure("acquire a released lock", () => client.acquire(key));
  await measure("try a held lock", () => client.tryAcquire(key));
  await second.release();
  await leases.deadLease(key);
  const third = await measure("take over an expired lock", () => client.acquire(key));
  await third.release();

  dynamodb.destroy();
  await proxy.close();
  return costs;
}
