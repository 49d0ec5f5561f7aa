"""An independent gRPC client: asks what there is by reflection, checks health, predicts, reports. Prints one JSON object.

usage: grpc-client.py ADDRESS FOLDER, where FOLDER holds the Python modules that protoc made of proto/grpc.
It knows no message of ours: the descriptors come from the service.
"""
import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

address, modules = sys.argv[1:]
sys.path.insert(0, modules)
from grpc_health_v1 import health_pb2  # noqa: E402
from grpc_reflection import reflection_pb2  # noqa: E402

TIMEOUT = 10
channel = grpc.insecure_channel(address)
grpc.channel_ready_future(channel).result(TIMEOUT)


def reflect(version, **question):
    call = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    requests = iter([reflection_pb2.ServerReflectionRequest(**question)])
    return next(call(requests, timeout=TIMEOUT))


services = {
    version: [service.name for service in reflect(version, list_services="*").list_services_response.service]
    for version in ("v1", "v1alpha")
}

pool = descriptor_pool.DescriptorPool()
known = {}


def learn(symbol):
    answer = reflect("v1", file_containing_symbol=symbol)
    for data in answer.file_descriptor_response.file_descriptor_proto:
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
        known[file.name] = file


added = set()


def add(name):
    if name in added:
        return
    added.add(name)
    for dependency in known[name].dependency:
        add(dependency)
    pool.Add(known[name])


learn("prediction.v1.PredictionService")
learn("observation.v1.ObservationService")
for name in list(known):
    add(name)
factory = message_factory.MessageFactory(pool)
method = pool.FindServiceByName("prediction.v1.PredictionService").methods_by_name["Predict"]
Request = factory.GetPrototype(method.input_type)
Response = factory.GetPrototype(method.output_type)
predict = channel.unary_unary(
    "/prediction.v1.PredictionService/Predict",
    request_serializer=Request.SerializeToString,
    response_deserializer=Response.FromString,
)


def health(service):
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    status = check(health_pb2.HealthCheckRequest(service=service), timeout=TIMEOUT).status
    return health_pb2.HealthCheckResponse.ServingStatus.Name(status)


request = Request(target_model="qwen3-32b")
for index, usage in enumerate([0.25, 0.9, -1.0]):
    request.inputs.add(
        input_id=index - 1,
        pod_type="decode",
        input_token_length=2000,
        num_request_running=4,
        kv_cache_usage=usage,
        server_ip=f"10.0.0.{index}",
    )
answer = predict(request, timeout=TIMEOUT)

methods = pool.FindServiceByName("observation.v1.ObservationService").methods_by_name
Event = factory.GetPrototype(methods["Report"].input_type)
Batch = factory.GetPrototype(methods["ReportBatch"].input_type)
Report = factory.GetPrototype(methods["Report"].output_type)


def observe(ttft):
    event = Event()
    event.observation.target_model = "qwen3-32b"
    event.observation.input.CopyFrom(request.inputs[0])
    event.observation.ttft_millis = ttft
    return event


def summarize(report):
    return [report.accepted, report.refused, [[refusal.index, refusal.reason] for refusal in report.refusals]]


report_stream = channel.stream_unary(
    "/observation.v1.ObservationService/Report",
    request_serializer=Event.SerializeToString,
    response_deserializer=Report.FromString,
)
report_batch = channel.unary_unary(
    "/observation.v1.ObservationService/ReportBatch",
    request_serializer=Batch.SerializeToString,
    response_deserializer=Report.FromString,
)
reports = {
    "stream": summarize(report_stream(iter([observe(120.5), observe(-3), observe(99)]), timeout=TIMEOUT)),
    "batch": summarize(report_batch(Batch(events=[observe(80), Event()]), timeout=TIMEOUT)),
}

try:
    predict(Request(), timeout=TIMEOUT)
    refusal = None
except grpc.RpcError as error:
    refusal = [error.code().name, error.details()]

print(
    json.dumps(
        {
            "services": services,
            "files": sorted(known),
            "health": {service: health(service) for service in ("", "prediction.v1.PredictionService")},
            "outputs": [
                [output.input_id, output.server_ip, output.predicted_ttft_millis, output.predicted_tpot_millis]
                for output in answer.outputs
            ],
            "metadata": [
                answer.metadata.target_model,
                answer.metadata.model_version,
                answer.metadata.omitted_inputs,
            ],
            "refusal": refusal,
            "reports": reports,
        }
    )
)
