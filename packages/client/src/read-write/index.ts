export { LeaseUpgradeError } from "./errors.ts";
export {
  mostReaders,
  type ReadOptions,
  type ReadWriteOptions,
  type TryReadOptions,
  type TryWriteOptions,
  type WriteOptions,
} from "./options.ts";
export { ReadWriteLock, type ReadWriteState } from "./read-write-lock.ts";
