import {
  type LeasedHandler,
  type LeaseLockOptions,
  type Lock,
  leased,
  leasedBatch,
  leaseLock,
  type SkipReason,
} from "@leasehold/middy";
import middy, { type MiddlewareObj } from "@middy/core";
import type {
  APIGatewayProxyEventV2,
  APIGatewayProxyHandlerV2,
  Context,
  DynamoDBRecord,
  DynamoDBStreamHandler,
  Handler,
  KinesisStreamHandler,
  KinesisStreamRecord,
  MSKRecord,
  ScheduledEvent,
  ScheduledHandler,
  SQSEvent,
  SQSHandler,
  SQSRecord,
} from "aws-lambda";
import type { MiddlewareObj as MiddlewareObj6 } from "middy6";
import { expectTypeOf, it } from "vitest";

interface ImportEvent {
  readonly file: string;
}

it("a leased handler is a handler of AWS's types, whose event it takes over", () => {
  const options = { tableName: "leases", key: "k" };
  const scheduled: ScheduledHandler = leased(options, async (event) => {
    expectTypeOf(event).toEqualTypeOf<ScheduledEvent>();
  });
  const queue: SQSHandler = leased(options, async (event) => {
    expectTypeOf(event).toEqualTypeOf<SQSEvent>();
    return { batchItemFailures: [] };
  });
  const api: APIGatewayProxyHandlerV2 = leased(options, async (event) => {
    expectTypeOf(event).toEqualTypeOf<APIGatewayProxyEventV2>();
    return { statusCode: 200 };
  });
  const own: Handler<ImportEvent, number> = leased(options, (event, context, lock) => {
    expectTypeOf(event).toEqualTypeOf<ImportEvent>();
    expectTypeOf(context).toEqualTypeOf<Context>();
    expectTypeOf(lock).toEqualTypeOf<Lock>();
    return event.file.length;
  });
  const any: Handler = leased(options, () => "done");
  expectTypeOf([scheduled, queue, api, own, any]).toBeArray();
  expectTypeOf<LeasedHandler<ImportEvent, number>>().toExtend<Handler<ImportEvent, number>>();
  expectTypeOf<LeasedHandler<unknown, undefined>>().toExtend<DynamoDBStreamHandler>();
  expectTypeOf<LeasedHandler<ImportEvent, number>>().not.toExtend<Handler<ImportEvent, string>>();
});

it("a method under @leased has the event of the options, and returns a promise", () => {
  const decorate = leased({ tableName: "leases", key: (event: ImportEvent) => event.file });
  // biome-ignore lint/suspicious/noExplicitAny: only the method's type matters.
  const place: any = {};
  const calls = [
    () =>
      decorate(async (event: ImportEvent, { lock }: Context & { lock: Lock }) => [event.file, lock], place),
    () => decorate(async (event: ImportEvent, { lock }: Context & { lock?: Lock }) => [event, lock], place),
    // @ts-expect-error: the key reads another event.
    () => decorate(async (event: { readonly id: number }) => event.id, place),
    // @ts-expect-error: a method under the lock always returns a promise.
    () => decorate((event: ImportEvent) => event.file, place),
  ];
  expectTypeOf(calls).toBeArray();
});

it("a handler of batches is a handler of the batch's source, and its functions know the record", () => {
  const queue: SQSHandler = leasedBatch<SQSRecord>(
    {
      tableName: "leases",
      key: ({ body }, context) => {
        expectTypeOf(context).toEqualTypeOf<Context>();
        return body;
      },
      onFailure: ({ messageId }) => expectTypeOf(messageId).toBeString(),
    },
    (record, _context, lock) => {
      expectTypeOf(record).toEqualTypeOf<SQSRecord>();
      expectTypeOf(lock).toEqualTypeOf<Lock>();
    },
  );
  const options = { tableName: "leases", key: "k" };
  const work = (): void => undefined;
  const kinesis: KinesisStreamHandler = leasedBatch<KinesisStreamRecord>(options, work);
  const table: DynamoDBStreamHandler = leasedBatch<DynamoDBRecord>(options, work);
  const kafka = leasedBatch<MSKRecord>(options, work);
  expectTypeOf<
    Awaited<ReturnType<typeof kafka>>["batchItemFailures"][number]["itemIdentifier"]
  >().toEqualTypeOf<{
    readonly partition: string;
    readonly offset: number;
  }>();
  expectTypeOf([queue, kinesis, table, kafka]).toBeArray();
});

it("in a middy chain, a key function takes an event that nobody declares, and the handler's stays what it is", () => {
  middy<ImportEvent, number>()
    .use(leaseLock({ tableName: "leases", key: (event) => event.file }))
    .handler(async (event, context) => {
      expectTypeOf(event).toEqualTypeOf<ImportEvent>();
      expectTypeOf(context.lock).toEqualTypeOf<Lock>();
      return 1;
    });
});

it("in a middy chain, a key function that declares its event declares the chain's", () => {
  middy()
    .use(leaseLock({ tableName: "leases", key: (event: ImportEvent) => event.file }))
    .handler(async (event) => {
      expectTypeOf(event).toEqualTypeOf<ImportEvent>();
    });
});

it("the middleware is one of middy 6 and of middy 7", () => {
  const lock = leaseLock({ tableName: "leases", key: "k" });
  expectTypeOf(lock).toExtend<MiddlewareObj<unknown, unknown, Error, Context & { lock: Lock }>>();
  expectTypeOf(lock).toExtend<MiddlewareObj6<unknown, unknown, Error, Context & { lock: Lock }>>();
});

it("what a skipped invocation answers is of the handler's result", () => {
  const handler = async (): Promise<number> => 1;
  leased({ tableName: "leases", key: "k", skipResult: 0 }, handler);
  leased({ tableName: "leases", key: "k", skipResult: async () => 0 }, handler);
  const named = (_event: unknown, _context: Context, reason: SkipReason): number => (reason ? 1 : 0);
  leased({ tableName: "leases", key: "k", skipResult: named }, handler);
  // @ts-expect-error: a text is no number
  leased({ tableName: "leases", key: "k", skipResult: "skipped" }, handler);
  // @ts-expect-error: nor is what a function gives
  leased({ tableName: "leases", key: "k", skipResult: () => "skipped" }, handler);
  leaseLock<ImportEvent, number>({ tableName: "leases", key: "k", skipResult: 0 });
  // @ts-expect-error: the result is declared as a number
  leaseLock<ImportEvent, number>({ tableName: "leases", key: "k", skipResult: "skipped" });
  expectTypeOf<LeaseLockOptions<ImportEvent, number>["skipResult"]>().not.toEqualTypeOf<unknown>();
});
