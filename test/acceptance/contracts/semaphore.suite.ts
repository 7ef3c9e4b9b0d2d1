import { semaphoreContract } from "../../contract/semaphore-contract.ts";
import { deployedPlace } from "./place.ts";

semaphoreContract(deployedPlace().place);
