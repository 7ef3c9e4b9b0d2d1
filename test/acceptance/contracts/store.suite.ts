import { DynamoDBLeaseStore } from "../../../packages/client/src/stores/sdk/store.ts";
import { storeContract } from "../../contract/store-contract.ts";
import { deployedPlace } from "./place.ts";

const { tableName, dynamodb } = deployedPlace();
storeContract(() => new DynamoDBLeaseStore(tableName, dynamodb));
