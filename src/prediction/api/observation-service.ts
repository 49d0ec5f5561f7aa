/** Serves reports over gRPC, as a stream or a batch, and hands their events to the sink. */
import { Failure } from '../../errors.ts';
import type { GrpcCall, GrpcService } from '../../grpc/call/service.ts';
import type { World } from '../../world.ts';
import { decodeEvent, encodeReportResponse, splitBatch } from '../observations/event-codec.ts';
import type { EventDraft } from '../observations/event-draft.ts';
import { EventIntake, type ReportSummary } from '../observations/event-intake.ts';
import { readJsonEvent } from '../observations/event-json.ts';
import { EventQueue } from '../observations/event-queue.ts';
import type { ObservationSink } from '../schema/observation-event.ts';
import { parseJsonText } from './rpc-body.ts';

export interface ObservationServiceDependencies {
  readonly sink: ObservationSink;
  readonly world: Pick<World, 'nowMs'>;
}

/** Reports in each of their encodings. */
export interface ObservationService {
  readonly grpc: GrpcService;
  /** The bytes of a ReportBatchRequest → those of a ReportResponse. */
  reportBytes(request: Uint8Array): Promise<Uint8Array>;
  /** Events in the JSON mapping of proto3; a text is one that was not parsed yet. */
  reportJson(events: readonly unknown[]): Promise<ReportSummary>;
  /** One event in JSON a line; undefined for a line that is not UTF-8. */
  reportJsonLines(lines: readonly (string | undefined)[]): Promise<ReportSummary>;
}

const MAX_EVENTS = 10_000;

export function createObservationService({ sink, world }: ObservationServiceDependencies): ObservationService {
  const queue = new EventQueue(sink);
  const createIntake = (): EventIntake => new EventIntake({ queue, nowMs: world.nowMs });

  const reportAll = async <T>(events: readonly T[], read: (event: T) => EventDraft): Promise<ReportSummary> => {
    if (events.length > MAX_EVENTS) throw tooManyEvents();
    const intake = createIntake();
    try {
      for (const event of events) await intake.take(() => read(event));
      return await intake.finish();
    } finally {
      intake.close();
    }
  };
  const reportBytes = async (request: Uint8Array): Promise<Uint8Array> =>
    encodeReportResponse(await reportAll(splitBatch(request, MAX_EVENTS), decodeEvent));
  // One function: each more would be kept by every stream that waits.
  const reportStream = async (requests: AsyncIterable<Uint8Array>, call: GrpcCall): Promise<Uint8Array> => {
    const intake = createIntake();
    try {
      for await (const request of requests) await intake.take(() => decodeEvent(request), call);
      return encodeReportResponse(await intake.finish());
    } finally {
      intake.close();
    }
  };

  return {
    reportBytes,
    reportJson: (events) => reportAll(events, readJsonEvent),
    reportJsonLines: (lines) => reportAll(lines, (line) => readJsonEvent(parseLine(line))),
    grpc: {
      name: 'observation.v1.ObservationService',
      methods: [
        { kind: 'client-stream', name: 'Report', keepsNoBytes: true, handle: reportStream },
        { kind: 'unary', name: 'ReportBatch', keepsNoBytes: true, handle: reportBytes },
      ],
    },
  };
}

function parseLine(line: string | undefined): unknown {
  if (line === undefined) throw new Failure('invalid', 'the line must be UTF-8');
  const value = parseJsonText(line);
  if (value === undefined) throw new Failure('invalid', 'the line must be JSON');
  return value;
}

function tooManyEvents(): Failure {
  const limit = MAX_EVENTS.toLocaleString('en');
  return new Failure('invalid', `Cannot report: events must be at most ${limit} in a batch, got more`, {
    field: 'events',
  });
}
