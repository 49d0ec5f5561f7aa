/** Predict and ReportBatch over gRPC, with grpc-js. */
import { fileURLToPath } from 'node:url';
import {
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Answer, Client } from './messages.ts';
import { createReporter, type Taken } from './reporter.ts';

const PROTO = fileURLToPath(new URL('../../proto', import.meta.url));
const REPORT_WITHIN_MS = 5000;
/** A service that comes back is found within about a second; grpc-js alone waits up to two minutes between its attempts. */
const CHANNEL_OPTIONS = { 'grpc.max_reconnect_backoff_ms': 1000 };

export interface GrpcOptions {
  readonly token?: string;
}

interface Services {
  readonly prediction: InstanceType<ServiceClientConstructor>;
  readonly observation: InstanceType<ServiceClientConstructor>;
}

/** `address` is `host:port`, or `unix:///path`. */
export function connectGrpc(address: string, { token }: GrpcOptions = {}): Client {
  const { prediction, observation } = createServices(address);
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  type Send<T> = (options: { deadline: number }, done: (error: ServiceError | null, answer: T) => void) => void;
  const call = <T>(withinMs: number, send: Send<T>) =>
    new Promise<T>((resolve, reject) =>
      send({ deadline: Date.now() + withinMs }, (error, answer) => (error === null ? resolve(answer) : reject(error))),
    );
  const reporter = createReporter((events) =>
    call<Taken>(REPORT_WITHIN_MS, (options, done) => observation.reportBatch!({ events }, metadata, options, done)),
  );

  return {
    predict: (targetModel, inputs, deadlineMs) =>
      call<Answer>(deadlineMs, (options, done) =>
        prediction.predict!({ targetModel, inputs }, metadata, options, done),
      ),
    report: reporter.send,
    async close() {
      const reported = await reporter.close();
      prediction.close();
      observation.close();
      return reported;
    },
  };
}

function createServices(address: string): Services {
  const files = ['prediction/v1/prediction.proto', 'observation/v1/observation.proto'];
  const definition = loadPackageDefinition(loadSync(files, { includeDirs: [PROTO], longs: Number, defaults: true }));
  const { prediction, observation } = definition as unknown as {
    prediction: { v1: { PredictionService: ServiceClientConstructor } };
    observation: { v1: { ObservationService: ServiceClientConstructor } };
  };
  return {
    prediction: new prediction.v1.PredictionService(address, credentials.createInsecure(), CHANNEL_OPTIONS),
    observation: new observation.v1.ObservationService(address, credentials.createInsecure(), CHANNEL_OPTIONS),
  };
}
