import { semaphoreContract } from "../../test/contract/semaphore-contract.ts";
import { deployedPlace } from "./place.ts";

semaphoreContract(deployedPlace().place);
