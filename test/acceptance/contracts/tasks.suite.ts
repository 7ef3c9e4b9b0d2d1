import { tasksContract } from "../../contract/tasks-contract.ts";
import { deployedPlace } from "./place.ts";

tasksContract(deployedPlace().place);
