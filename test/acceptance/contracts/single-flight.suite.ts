import { singleFlightContract } from "../../contract/single-flight-contract.ts";
import { deployedPlace } from "./place.ts";

singleFlightContract(deployedPlace().place);
