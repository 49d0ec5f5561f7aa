/** Calls Predict and ReportBatch over gRPC, with grpc-js. */
import { fileURLToPath } from 'node:url';
import {
  type ChannelCredentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { type Access, createCredentials } from './grpc-credentials.ts';
import type { Answer, Client, Event, ReportOptions } from './messages.ts';
import { createReporter, type Failure, type Taken } from './reporter.ts';

const PROTO = fileURLToPath(new URL('../../proto', import.meta.url));
const REPORT_WITHIN_MS = 5000;
const CHANNEL_OPTIONS = {
  // A dead connection is replaced within 15 s. TCP alone may take a quarter of an hour to detect it.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5000,
  'grpc.keepalive_permit_without_calls': 1,
  // A service that is available again is reached within about a second. grpc-js alone waits up to two minutes between attempts.
  'grpc.max_reconnect_backoff_ms': 1000,
};
const TOO_LARGE_FOR_TRIVET = /it must be at most \d+ bytes/;
/** 413 as grpc-js describes it, and as Envoy writes it in an answer with status 200. */
const TOO_LARGE_FOR_PROXY = /^(Received HTTP status code 413|(Payload|Content|Request Entity) Too Large)$/i;

export type GrpcOptions = Access & ReportOptions;

interface Services {
  readonly prediction: InstanceType<ServiceClientConstructor>;
  readonly observation: InstanceType<ServiceClientConstructor>;
}

interface Encoder {
  requestSerialize(request: object): Buffer;
}

/** A method of a client that grpc-js created. */
type Send = (
  request: object,
  metadata: Metadata,
  limits: { readonly deadline: number },
  done: (error: ServiceError | null, answer: never) => void,
) => void;

/** `address` is `host:port`, or `unix:///path`. */
export function connectGrpc(address: string, options: GrpcOptions = {}): Client {
  const { prediction, observation } = createServices(address, createCredentials(address, options));
  const metadata = new Metadata();
  if (options.token !== undefined) metadata.set('authorization', `Bearer ${options.token}`);
  const call = <T>(send: Send, request: object, withinMs: number) =>
    new Promise<T>((resolve, reject) => {
      const done = (error: ServiceError | null, answer: T) => (error === null ? resolve(answer) : reject(error));
      send(request, metadata, { deadline: Date.now() + withinMs }, done);
    });
  const predict = prediction.predict!.bind(prediction);
  const reportBatch = observation.reportBatch!.bind(observation);
  const encoder = observation.reportBatch as unknown as Encoder;
  const encode = (event: Event) => {
    const message = toMessage(event);
    // Throws for an event that cannot be encoded, since it would fail its whole batch.
    encoder.requestSerialize({ events: [message] });
    return message;
  };
  const sendBatch = (events: readonly object[]) => call<Taken>(reportBatch, { events }, REPORT_WITHIN_MS);
  const reporter = createReporter({ encode, sendBatch, describeFailure }, options);

  return {
    predict: (targetModel, inputs, deadlineMs) => call<Answer>(predict, { targetModel, inputs }, deadlineMs),
    report: reporter.send,
    stats: reporter.stats,
    async close() {
      const reported = await reporter.close();
      prediction.close();
      observation.close();
      return reported;
    },
  };
}

function createServices(address: string, credentials: ChannelCredentials): Services {
  const files = ['prediction/v1/prediction.proto', 'observation/v1/observation.proto'];
  const definition = loadPackageDefinition(loadSync(files, { includeDirs: [PROTO], longs: Number, defaults: true }));
  const { prediction, observation } = definition as unknown as {
    prediction: { v1: { PredictionService: ServiceClientConstructor } };
    observation: { v1: { ObservationService: ServiceClientConstructor } };
  };
  return {
    prediction: new prediction.v1.PredictionService(address, credentials, CHANNEL_OPTIONS),
    observation: new observation.v1.ObservationService(address, credentials, CHANNEL_OPTIONS),
  };
}

/** Returns the event with its time in the form that proto-loader takes. */
function toMessage(event: Event): object {
  return Object.fromEntries(
    Object.entries(event).map(([kind, value]) => {
      const atMs = Date.parse(value.at);
      return [kind, { ...value, at: { seconds: Math.floor(atMs / 1000), nanos: (atMs % 1000) * 1_000_000 } }];
    }),
  );
}

function describeFailure(error: unknown): Failure {
  const { code, details = '', metadata } = error as Partial<ServiceError>;
  const pushbackMs = Number(metadata?.get('grpc-retry-pushback-ms')[0]);
  return {
    // UNIMPLEMENTED is not final, because grpc-js returns it for the 404 of a proxy without a route.
    isFinal: code === status.INVALID_ARGUMENT || isTooLarge(code, details),
    retryAfterMs: Number.isFinite(pushbackMs) ? pushbackMs : 0,
  };
}

/**
 * Checks the text too: rate limits also answer with RESOURCE_EXHAUSTED, and grpc-js returns it for a page of a proxy. gRPC has no
 * code for the 413 of a proxy.
 */
function isTooLarge(code: number | undefined, details: string): boolean {
  if (code === status.RESOURCE_EXHAUSTED) return TOO_LARGE_FOR_TRIVET.test(details);
  return code === status.UNKNOWN && TOO_LARGE_FOR_PROXY.test(details);
}
