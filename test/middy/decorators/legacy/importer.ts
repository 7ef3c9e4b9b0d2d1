// A class with the decorators of Powertools, which need `experimentalDecorators`.
import type { LambdaInterface } from "@aws-lambda-powertools/commons/types";
import type { Logger } from "@aws-lambda-powertools/logger";
import type { Metrics } from "@aws-lambda-powertools/metrics";
import type { Tracer } from "@aws-lambda-powertools/tracer";
import { type LeaseLockOptions, type Lock, leased } from "@leasehold/middy";
import type { Context } from "aws-lambda";

export interface Instances {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
}

type Handler = (event: { readonly file: string }, context: Context) => Promise<string>;

export function importerOf(
  options: LeaseLockOptions<{ readonly file: string }>,
  { logger, metrics, tracer }: Instances,
): Handler {
  class Importer implements LambdaInterface {
    readonly prefix: string;

    constructor(prefix: string) {
      this.prefix = prefix;
    }

    @tracer.captureLambdaHandler()
    @metrics.logMetrics()
    @logger.injectLambdaContext()
    @leased(options)
    async handler(event: { readonly file: string }, context: Context & { lock?: Lock }): Promise<string> {
      return `${this.prefix}${event.file} under ${context.lock?.lease.key}`;
    }
  }
  const importer = new Importer("imported ");
  return importer.handler.bind(importer) as Handler;
}
