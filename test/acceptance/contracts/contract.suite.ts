/** One contract on the deployed lease table. Its tests live in the time of their own clocks. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { environmentNames } from "@leasehold/client/environment";
import { afterAll, inject } from "vitest";
import { DynamoDBLeaseStore } from "../../../packages/client/src/stores/sdk/store.ts";
import { leaseContract } from "../../contract/lease-contract.ts";
import { storeContract } from "../../contract/store-contract.ts";
import { primitiveContracts } from "../../support/contracts.ts";
import { enginePlace } from "../../support/engine-place.ts";
import { keepToKeySpace, readConsistently } from "../key-space.ts";

const dynamodb = new DynamoDBClient({});
keepToKeySpace(dynamodb);
readConsistently(dynamodb);
afterAll(() => dynamodb.destroy());
const { tableName, place } = enginePlace(String(process.env[environmentNames.tableName]), dynamodb);

const contracts = {
  ...primitiveContracts,
  lease: leaseContract,
  store: () => storeContract(() => new DynamoDBLeaseStore(tableName, dynamodb)),
};

/** The name of a contract. */
export type ContractName = keyof typeof contracts;

declare module "vitest" {
  interface ProvidedContext {
    /** Which one this file is. */
    contract: ContractName;
  }
}

contracts[inject("contract")](place);
