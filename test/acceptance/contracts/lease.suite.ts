import { leaseContract } from "../../contract/lease-contract.ts";
import { deployedPlace } from "./place.ts";

leaseContract(deployedPlace().place);
