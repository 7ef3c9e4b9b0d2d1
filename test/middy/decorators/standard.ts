// A class with the decorators of TypeScript 5. It imports nothing, so that a test can run it as text.
import type { LeaseLockOptions, Lock, leased } from "@leasehold/middy";
import type { Context } from "aws-lambda";

interface ImportEvent {
  readonly file: string;
}

type ImporterClass = new (
  prefix: string,
) => { handler(event: ImportEvent, context: Context & { lock: Lock }): Promise<string> };

export function importerOf(lease: typeof leased, options: LeaseLockOptions<ImportEvent>): ImporterClass {
  class Importer {
    readonly prefix: string;

    constructor(prefix: string) {
      this.prefix = prefix;
    }

    @lease(options)
    async handler(event: ImportEvent, context: Context & { lock: Lock }): Promise<string> {
      return `${this.prefix}${event.file} under ${context.lock.lease.key}`;
    }
  }
  return Importer;
}
