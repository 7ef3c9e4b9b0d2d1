import { readWriteContract } from "../../contract/read-write-contract.ts";
import { deployedPlace } from "./place.ts";

readWriteContract(deployedPlace().place);
