/** The part of dynamodb-lock-client 0.7.3 that is used: its types on npm would bring the AWS SDK 2. */
declare module "dynamodb-lock-client" {
  import type { EventEmitter } from "node:events";

  export type Callback<Answer = unknown> = (error?: Error, answer?: Answer) => void;
  export type Call = (params: object, callback: Callback) => void;

  export interface LockTable {
    readonly dynamodb: { readonly get: Call; readonly put: Call; readonly delete: Call };
    readonly lockTable: string;
    readonly partitionKey: string;
    readonly owner?: string;
    readonly retryCount?: number;
  }

  export interface Lock extends EventEmitter {
    release(callback: Callback): void;
  }

  export interface Locker {
    acquireLock(id: string, callback: Callback<Lock>): void;
  }

  export interface FailOpenConfig extends LockTable {
    readonly leaseDurationMs: number;
    readonly heartbeatPeriodMs?: number;
    readonly trustLocalTime?: boolean;
  }

  const lockClient: {
    readonly FailOpen: new (config: FailOpenConfig) => Locker;
    readonly FailClosed: new (config: LockTable & { readonly acquirePeriodMs: number }) => Locker;
  };
  export default lockClient;
}
