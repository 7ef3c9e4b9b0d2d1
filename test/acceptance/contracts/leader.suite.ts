import { leaderContract } from "../../contract/leader-contract.ts";
import { deployedPlace } from "./place.ts";

leaderContract(deployedPlace().place);
