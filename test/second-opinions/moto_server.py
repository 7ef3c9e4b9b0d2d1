"""
moto's server, with Step Functions that runs definitions in JSONata. It prints its port, and ends with its standard input.

moto reads JSONata and has no evaluator. That of jsonata-python, which is not the one that the project uses elsewhere, is
put in its place. Each correction below says what moto lacks.
"""
import hashlib
import json
import os
import sys
import threading
import uuid

from jsonata import Jsonata
from moto.core.config import default_user_config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.stepfunctions.parser.asl.component.intrinsic import jsonata as own_functions
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import state_task_service_aws_sdk as sdk_tasks
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import StateTaskService
from moto.stepfunctions.parser.asl.eval import states, variable_store
from moto.stepfunctions.parser.asl.jsonata import jsonata as evaluation
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from werkzeug.serving import make_server


def end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()

default_user_config["stepfunctions"]["execute_state_machine"] = True

# What Step Functions adds to JSONata, as far as the definitions use it. moto gives texts in place of the first two.
functions = {
    "hash": lambda text, algorithm: hashlib.new(algorithm.replace("-", ""), text.encode()).hexdigest(),
    "uuid": lambda: str(uuid.uuid4()),
    "parse": json.loads,
}
for name in functions:
    del own_functions._DECLARATION_BY_VARIABLE_REFERENCE[f"${name}"]


def evaluate(expression):
    try:
        compiled = Jsonata(expression)
        for name, function in functions.items():
            compiled.register_lambda(name, function)
        return compiled.evaluate(None)
    except Exception as error:
        print(f"JSONata: {error!r} of {expression}", file=sys.stderr)
        raise evaluation.JSONataException("UNKNOWN", str(error)) from error


evaluation._eval_jsonata = evaluate


def declare(bindings):
    return "".join(f"{name}:={json.dumps(value, default=str)};" for name, value in bindings.items())


# moto's own puts a text between quotes as it is: the quotes in an error's cause end it.
states.encode_jsonata_variable_declarations = declare
variable_store.encode_jsonata_variable_declarations = declare

new_client = sdk_tasks.boto_client_for
clients, making = {}, threading.Lock()


# moto makes a client for each call, in many threads at once, for which boto's default session is not made.
def client_for(service, region, state_credentials=None):
    with making:
        if (service, region) not in clients:
            clients[service, region] = new_client(service=service, region=region)
        return clients[service, region]


sdk_tasks.boto_client_for = client_for


def operation(task, service, action):
    client = client_for(task._get_boto_service_name(service), "us-east-1")
    name = client.meta.method_to_api_mapping[task._get_boto_service_action(action)]
    return client.meta.service_model.operation_model(name)


# moto leaves these two empty, and so sends StateMachineArn where boto knows stateMachineArn alone.
def to_boto(task, parameters, boto_service_name=None, service_action_name=None):
    task._to_boto_request(parameters, operation(task, boto_service_name, service_action_name).input_shape)


def from_boto(task, response, boto_service_name=None, service_action_name=None):
    task._from_boto_response(response, operation(task, boto_service_name, service_action_name).output_shape)


StateTaskService._normalise_parameters = to_boto
StateTaskService._normalise_response = from_boto

every_execution = StepFunctionsParserBackend._get_executions


# moto asks each execution for a task's token, and fails at one whose definition is still being read.
def begun_executions(backend, status=None):
    return [execution for execution in every_execution(backend, status) if execution.exec_worker.env is not None]


StepFunctionsParserBackend._get_executions = begun_executions

app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
# Where Step Functions finds the other services.
os.environ["MOTO_PORT"] = str(server.port)
print(server.port, flush=True)
server.serve_forever()
