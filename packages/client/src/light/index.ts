export type { LightCredentials } from "./credentials.ts";
export { LeaseClient, type LightClientOptions } from "./lease-client.ts";
export { type LightStore, type LightStoreOptions, lightStore } from "./light-store.ts";
