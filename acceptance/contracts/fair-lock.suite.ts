import { fairLockContract } from "../../test/contract/fair-lock-contract.ts";
import { deployedPlace } from "./place.ts";

fairLockContract(deployedPlace().place);
