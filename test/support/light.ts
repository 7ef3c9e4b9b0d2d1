import { type LightStore, type LightStoreOptions, lightStore } from "@leasehold/client/light";
import type { Target } from "./proxy.ts";

/** The settings of an engine or a proxy, as the light store takes them. */
export function lightConfig({
  clientConfig,
}: Target): Pick<LightStoreOptions, "endpoint" | "region" | "credentials"> {
  const { endpoint, region, credentials } = clientConfig as Required<LightStoreOptions>;
  return { endpoint, region, credentials };
}

/** A light store on an engine or a proxy. */
export function lightStoreOn(target: Target, options: LightStoreOptions): LightStore {
  return lightStore({ ...lightConfig(target), ...options });
}
