/** The observation service on real ports, over gRPC and HTTP, in front of a sink that a test plays. */
import assert from 'node:assert/strict';
import { openGrpcServer } from '../../../src/grpc/listener/server.ts';
import { createHttpApp } from '../../../src/http/http-app.ts';
import { listenHttp } from '../../../src/http/http-server.ts';
import { createObservationRoutes } from '../../../src/prediction/api/observation-routes.ts';
import { createObservationService } from '../../../src/prediction/api/observation-service.ts';
import type {
  ObservationEvent,
  ObservationSink,
  ReportResult,
} from '../../../src/prediction/schema/observation-event.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { realWorld } from '../../../src/world.ts';
import { connectRaw } from '../grpc/grpc-client.ts';
import { decodeMessage, encodeMessage, messageType } from '../grpc/proto-messages.ts';
import { EventMessage, NOW_MS } from './observation-events.ts';

export const BatchMessage = messageType('observation.v1.ReportBatchRequest');
export const BATCH_PATH = '/observation.v1.ObservationService/ReportBatch';
export const STREAM_PATH = '/observation.v1.ObservationService/Report';

export interface Report {
  accepted: number;
  refused: number;
  refusals: { index: number; requestId: string; reason: string }[];
}

export type Respond = (events: readonly ObservationEvent[]) => Promise<ReportResult>;
export type ObservationServer = Awaited<ReturnType<typeof startObservationServer>>;

export const takeAll: Respond = (events) => Promise.resolve({ accepted: events.length, refusals: [] });

export function decodeReport(bytes: Uint8Array): Report {
  return decodeMessage(messageType('observation.v1.ReportResponse'), bytes);
}

export async function startObservationServer() {
  let respond = takeAll;
  let reported: ObservationEvent[] = [];
  const sink: ObservationSink = {
    report: (events) => {
      reported.push(...events);
      return respond(events);
    },
  };
  const service = createObservationService({ sink, world: { nowMs: () => NOW_MS } });
  const dependencies = { log: createLog('silent'), metrics: createMetrics(), world: realWorld };
  const listen = { host: '127.0.0.1', port: 0 };
  const grpc = await openGrpcServer({ ...dependencies, ...listen, services: [service.grpc], maxMessageBytes: 4e6 });
  const client = connectRaw(`127.0.0.1:${grpc.port}`);
  const http = await listenHttp(listen);
  const routes = createObservationRoutes(service, { mode: 'auto', verifyToken: () => Promise.resolve(undefined) });
  const mounts = [{ path: '/observation.v1.ObservationService', errors: 'rpc' as const, routes }];
  http.serve(createHttpApp({ ...dependencies, mounts, maxBodyBytes: 1e7, checkReady: async () => {} }));

  const postBatch = (body: NonNullable<RequestInit['body']>, type: string) =>
    fetch(http.url + BATCH_PATH, { method: 'POST', headers: { 'content-type': type }, body });
  return {
    service,
    client,
    /** What the sink got since `listenWith`. */
    reported: (): readonly ObservationEvent[] => reported,
    /** Forgets what was reported; from here on the sink does this. */
    listenWith: (answer = takeAll) => {
      respond = answer;
      reported = [];
    },
    postBatch,
    reportBatch: async (events: object[]) =>
      decodeReport(await client.unary(BATCH_PATH, encodeMessage(BatchMessage, { events }))),
    reportStream: async (events: object[]) => {
      const messages = events.map((event) => encodeMessage(EventMessage, event));
      return decodeReport(await client.clientStream(STREAM_PATH, messages));
    },
    reportLines: async (lines: string[]) => {
      const response = await postBatch(lines.join('\n'), 'application/jsonl');
      assert.equal(response.status, 200);
      return (await response.json()) as Report;
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await Promise.all([grpc.drain(1000), http.drain(1000)]);
    },
  };
}
