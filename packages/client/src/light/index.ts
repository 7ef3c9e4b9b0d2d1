export type { LightCredentials } from "./credentials.ts";
export { type LightStore, type LightStoreOptions, lightStore } from "./light-store.ts";
