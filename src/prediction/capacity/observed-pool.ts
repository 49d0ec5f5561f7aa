/** A pool as its samples show it: its servers, their latencies under load, and the requests that they get. */
import { Failure } from '../../errors.ts';
import type { LatencyModel } from '../model/model.ts';
import type { Observation } from '../schema/observation.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { fitLoadCurve } from './load-curve.ts';
import { collectTtfts } from './observed-ttfts.ts';
import { measureReportedShare } from './reported-share.ts';
import { createServiceModel } from './service-model.ts';
import type { QueuePool, QueueServer } from './simulate-queue.ts';
import { fitTpotCurve } from './tpot-curve.ts';

export interface ObservedPoolOptions {
  readonly model: LatencyModel;
  readonly samples: readonly Observation[];
  /** All that the samples name when undefined. */
  readonly servers: readonly string[] | undefined;
  readonly podType: string;
  /** The mean length of an answer, which samples do not tell. */
  readonly outputTokens: number;
}

export const MIN_SAMPLES = 50;

export function createObservedPool({ model, samples, outputTokens, ...options }: ObservedPoolOptions): QueuePool {
  const podType = normalizePodType(options.podType);
  const ofPod = samples.filter(({ input }) => normalizePodType(input.podType) === podType);
  if (ofPod.length < MIN_SAMPLES)
    throw new Failure(
      'invalid',
      `Cannot find the capacity: ${ofPod.length} samples of the pod type "${podType}", it must be at least ${MIN_SAMPLES}`,
    );
  const byServer = Map.groupBy(ofPod, ({ input }) => input.serverIp);
  const names = options.servers ?? [...byServer.keys()].sort();
  const unknown = names.find((name) => !byServer.has(name));
  if (unknown !== undefined)
    throw new Failure(
      'invalid',
      `Cannot find the capacity: no sample is of the server "${unknown}"; known are ${[...byServer.keys()].sort().slice(0, 20).join(', ')}`,
    );
  const prompts = ofPod.map(({ input }) => input);
  const servers = names.map((name) => createQueueServer(name, byServer.get(name)!, outputTokens));
  return { servers, model: createServiceModel(model, podType), prompts, outputTokens };
}

function createQueueServer(name: string, samples: readonly Observation[], outputTokens: number): QueueServer {
  const reportedShare = measureReportedShare(samples, outputTokens);
  const tpot = fitTpotCurve(samples, { outputTokens, reportedShare });
  if (tpot === undefined)
    throw new Failure('invalid', `Cannot find the capacity: too few samples of the server "${name}" have a TPOT`);
  return {
    name,
    load: fitLoadCurve(samples.map(({ input }) => input)),
    tpot,
    ttft: collectTtfts(samples, reportedShare),
  };
}
