import { jobRunsContract } from "../../contract/job-runs-contract.ts";
import { deployedPlace } from "./place.ts";

jobRunsContract(deployedPlace().place);
