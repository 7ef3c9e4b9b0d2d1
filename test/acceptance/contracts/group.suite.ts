import { groupContract } from "../../contract/group-contract.ts";
import { deployedPlace } from "./place.ts";

groupContract(deployedPlace().place);
