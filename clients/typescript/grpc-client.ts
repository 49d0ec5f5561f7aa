/** Predict over gRPC, and all reports in one stream that is opened again when it ends. */
import { fileURLToPath } from 'node:url';
import {
  type ClientWritableStream,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Answer, Client, Event, Reported } from './messages.ts';

const PROTO = fileURLToPath(new URL('../../proto', import.meta.url));
const REOPEN_AFTER_MS = 1000;
const CLOSE_WITHIN_MS = 5000;
/** Events that wait while the service is away. Beyond it, events are dropped and counted. */
const MAX_WAITING = 10_000;

export interface GrpcOptions {
  readonly token?: string;
}

type ReportStream = ClientWritableStream<Event>;

interface Services {
  readonly prediction: InstanceType<ServiceClientConstructor>;
  readonly observation: InstanceType<ServiceClientConstructor>;
}

/** `address` is `host:port`, or `unix:///path`. */
export function connectGrpc(address: string, { token }: GrpcOptions = {}): Client {
  const { prediction, observation } = createServices(address);
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  const reports = createReports((done) => observation.report!(metadata, done) as ReportStream);

  return {
    predict: (targetModel, inputs, deadlineMs) =>
      new Promise<Answer>((resolve, reject) => {
        const done = (error: ServiceError | null, answer: Answer) => (error === null ? resolve(answer) : reject(error));
        prediction.predict!({ targetModel, inputs }, metadata, { deadline: Date.now() + deadlineMs }, done);
      }),
    report: (event) => reports.send(event),
    async close() {
      const reported = await reports.close();
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
    prediction: new prediction.v1.PredictionService(address, credentials.createInsecure()),
    observation: new observation.v1.ObservationService(address, credentials.createInsecure()),
  };
}

type Done = (error: ServiceError | null, answer: Reported) => void;

/** Keeps one stream open. An event that a broken stream had taken can be lost; an event that it had not waits. */
function createReports(open: (done: Done) => ReportStream) {
  const waiting: Event[] = [];
  const reported = { accepted: 0, refused: 0, dropped: 0 };
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let stream: ReportStream | undefined;
  let isClosing = false;

  function start(): void {
    const opened = open((error, answer) => {
      stream = undefined;
      if (error === null) {
        reported.accepted += answer.accepted;
        reported.refused += answer.refused;
      }
      if (isClosing) resolve();
      else setTimeout(start, REOPEN_AFTER_MS).unref();
    });
    opened.on('error', () => undefined); // The answer above has the same error.
    opened.on('drain', drain);
    stream = opened;
    drain();
  }

  function drain(): void {
    while (stream !== undefined && waiting.length > 0 && !stream.writableNeedDrain) stream.write(waiting.shift()!);
    if (isClosing && waiting.length === 0) stream?.end();
  }

  start();
  return {
    send(event: Event): void {
      if (waiting.length >= MAX_WAITING) reported.dropped++;
      else waiting.push(event);
      drain();
    },
    async close(): Promise<Reported> {
      isClosing = true;
      if (stream === undefined) resolve();
      else drain();
      const timer = setTimeout(() => stream?.cancel(), CLOSE_WITHIN_MS);
      await closed;
      clearTimeout(timer);
      return { ...reported, dropped: reported.dropped + waiting.length };
    },
  };
}
