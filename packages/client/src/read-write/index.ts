export { LeaseUpgradeError } from "./errors.ts";
export {
  mostReaders,
  type ReadOptions,
  ReadWriteLock,
  type ReadWriteOptions,
  type ReadWriteState,
  type TryReadOptions,
  type TryWriteOptions,
  type WriteOptions,
} from "./read-write-lock.ts";
