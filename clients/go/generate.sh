#!/bin/sh
# Writes the Go code of the messages into the folder gen/, which is not committed.
# Needs protoc, protoc-gen-go and protoc-gen-go-grpc: see README.md.
set -eu
cd "$(dirname "$0")"
protoc --proto_path=../../proto --go_out=. --go_opt=module=trivet --go-grpc_out=. --go-grpc_opt=module=trivet \
  prediction/v1/prediction.proto observation/v1/observation.proto
