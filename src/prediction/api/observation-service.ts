/** Serves reports over gRPC, as a stream or a batch, and hands their events to the sink. */
import { Failure } from '../../errors.ts';
import type { GrpcCall, GrpcService, MessageCollector } from '../../grpc/call/service.ts';
import type { World } from '../../world.ts';
import { decodeEvent, encodeReportResponse, splitBatch } from '../observations/event-codec.ts';
import type { EventDraft } from '../observations/event-draft.ts';
import { EventIntake, measureBatchAhead, type ReportSummary } from '../observations/event-intake.ts';
import { readJsonEvent } from '../observations/event-json.ts';
import { createEventPace } from '../observations/event-pace.ts';
import { EventQueue } from '../observations/event-queue.ts';
import type { ObservationSink } from '../schema/observation-event.ts';
import { parseJsonText } from './rpc-body.ts';

export interface ObservationServiceDependencies {
  readonly sink: ObservationSink;
  readonly world: Pick<World, 'nowMs'>;
}

/** Takes reports in each of their encodings. */
export interface ObservationService {
  readonly grpc: GrpcService;
  /** Takes the bytes of a ReportBatchRequest and resolves with those of a ReportResponse. */
  reportBytes(request: Uint8Array): Promise<Uint8Array>;
  /** Takes events in the JSON mapping of proto3; an event that is a string is not parsed yet. */
  reportJson(events: readonly unknown[]): Promise<ReportSummary>;
  /** Takes one event in JSON a line; undefined is a line that is not UTF-8. */
  reportJsonLines(lines: readonly (string | undefined)[]): Promise<ReportSummary>;
}

const MAX_EVENTS = 10_000;

export function createObservationService({ sink, world }: ObservationServiceDependencies): ObservationService {
  const queue = new EventQueue(sink);
  const pace = createEventPace();
  const createIntake = (onRoom: () => void, aheadMs = 0): EventIntake =>
    new EventIntake({ queue, nowMs: world.nowMs, onRoom, aheadMs });

  const reportAll = async <T>(events: readonly T[], read: (event: T) => EventDraft): Promise<ReportSummary> => {
    if (events.length > MAX_EVENTS) throw tooManyEvents();
    let goOn = (): void => {};
    const aheadMs = await measureBatchAhead({ events, read }, world.nowMs(), pace);
    const intake = createIntake(() => goOn(), aheadMs);
    try {
      for (const event of events) {
        if (!intake.reserve())
          await new Promise<void>((resolve) => {
            goOn = resolve;
          });
        intake.take(read, event);
      }
      return await intake.finish();
    } finally {
      intake.close();
    }
  };
  const reportBytes = async (request: Uint8Array): Promise<Uint8Array> =>
    encodeReportResponse(await reportAll(splitBatch(request, MAX_EVENTS), decodeEvent));
  const openReport = (_call: GrpcCall, onRoom: () => void): MessageCollector =>
    new StreamedReport(createIntake(onRoom));

  return {
    reportBytes,
    reportJson: (events) => reportAll(events, readJsonEvent),
    reportJsonLines: (lines) => reportAll(lines, (line) => readJsonEvent(parseLine(line))),
    grpc: {
      name: 'observation.v1.ObservationService',
      methods: [
        { kind: 'client-stream', name: 'Report', keepsNoBytes: true, open: openReport },
        { kind: 'unary', name: 'ReportBatch', keepsNoBytes: true, handle: reportBytes },
      ],
    },
  };
}

/** Collects the events of a stream. */
class StreamedReport implements MessageCollector {
  readonly #intake: EventIntake;

  constructor(intake: EventIntake) {
    this.#intake = intake;
  }

  reserve(): boolean {
    return this.#intake.reserve();
  }

  take(message: Uint8Array): void {
    this.#intake.take(decodeEvent, message);
  }

  async finish(): Promise<Uint8Array> {
    return encodeReportResponse(await this.#intake.finish());
  }

  close(): void {
    this.#intake.close();
  }
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
