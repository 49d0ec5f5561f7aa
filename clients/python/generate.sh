#!/bin/sh
# Writes the Python code of the messages into the folder gen/, which is not committed. Only the gRPC client needs it.
# Needs protoc, or the package grpcio-tools: PROTOC="python3 -m grpc_tools.protoc" ./generate.sh
set -eu
cd "$(dirname "$0")"
mkdir -p gen
${PROTOC:-protoc} --proto_path=../../proto --python_out=gen prediction/v1/prediction.proto observation/v1/observation.proto
