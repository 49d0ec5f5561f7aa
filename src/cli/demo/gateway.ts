/** Acts as a small gateway in the demo: requests predictions for each candidate server over gRPC. */
import { fileURLToPath } from 'node:url';
import { Client, credentials } from '@grpc/grpc-js';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';

export interface PredictInput {
  readonly input_id: number;
  readonly server_ip: string;
  readonly input_token_length: number;
  readonly prefix_cache_score: number;
  readonly num_request_waiting: number;
  readonly num_request_running: number;
  readonly kv_cache_usage: number;
  readonly inflight_tokens: number;
}

export interface PredictOutput {
  readonly input_id: number;
  readonly server_ip: string;
  readonly predicted_ttft_millis: number;
  readonly predicted_tpot_millis: number;
}

export interface PredictResponse {
  readonly outputs: readonly PredictOutput[];
  readonly metadata: { readonly target_model: string; readonly model_version: string; readonly omitted_inputs: number };
}

interface PredictRequest {
  readonly target_model: string;
  readonly inputs: readonly PredictInput[];
}

const PROTO = fileURLToPath(new URL('../../../proto/prediction/v1/prediction.proto', import.meta.url));

export interface Gateway {
  predict(request: PredictRequest): Promise<PredictResponse>;
  close(): void;
}

export function connectGateway(address: string): Gateway {
  const definitions = loadSync(PROTO, { keepCase: true, defaults: true });
  const service = definitions['prediction.v1.PredictionService'] as Record<
    string,
    MethodDefinition<PredictRequest, PredictResponse>
  >;
  const method = service.Predict!;
  const client = new Client(address, credentials.createInsecure());
  return {
    predict: (request) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          request,
          (error, response) => {
            if (response === undefined) reject(error ?? new Error('The answer is empty'));
            else resolve(response);
          },
        );
      }),
    close: () => client.close(),
  };
}
