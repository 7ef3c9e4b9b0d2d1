export type { LightCredentials } from "../stores/light/credentials.ts";
export { type LightStore, type LightStoreOptions, lightStore } from "../stores/light/light-store.ts";
export { LeaseClient, type LightClientOptions } from "./light-client.ts";
