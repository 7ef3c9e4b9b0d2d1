import { fairLockContract } from "../../contract/fair-lock-contract.ts";
import { deployedPlace } from "./place.ts";

fairLockContract(deployedPlace().place);
