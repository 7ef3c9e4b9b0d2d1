export {
  LeaseUpgradeError,
  mostReaders,
  type ReadOptions,
  ReadWriteLock,
  type ReadWriteOptions,
  type ReadWriteState,
  type TryReadOptions,
  type TryWriteOptions,
  type WriteOptions,
} from "../primitives/seats/read-write-lock.ts";
