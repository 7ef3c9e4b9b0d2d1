import { serialTasksContract } from "../../contract/serial-tasks-contract.ts";
import { tasksContract } from "../../contract/tasks-contract.ts";
import { deployedPlace } from "./place.ts";

tasksContract(deployedPlace().place);
serialTasksContract(deployedPlace().place);
