import { leaderContract } from "../../test/contract/leader-contract.ts";
import { deployedPlace } from "./place.ts";

leaderContract(deployedPlace().place);
