import { jobRunsContract } from "../../test/contract/job-runs-contract.ts";
import { deployedPlace } from "./place.ts";

jobRunsContract(deployedPlace().place);
