import { groupContract } from "../../test/contract/group-contract.ts";
import { deployedPlace } from "./place.ts";

groupContract(deployedPlace().place);
