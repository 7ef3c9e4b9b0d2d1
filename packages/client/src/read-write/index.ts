export { mostReaders, readerPlace, writerPlace } from "../schema-read-write.ts";
export { LeaseUpgradeError } from "./errors.ts";
export type { ReadOptions, TryReadOptions, TryWriteOptions, WriteOptions } from "./options.ts";
export { ReadWriteLock, type ReadWriteState } from "./read-write-lock.ts";
