/**
 * Computes how long one step of a serving engine takes. A step runs chunks of prompts (prefill) and one token of every decoding
 * sequence through the model together.
 */

/** The work of one step. Contexts are summed over sequences. */
export interface StepLoad {
  readonly prefillTokens: number;
  /** Number of query–key pairs of prefill attention. */
  readonly prefillAttention: number;
  readonly prefillSequences: number;
  readonly decodeSequences: number;
  /** Sum of the context lengths of the decoding sequences. */
  readonly decodeContextTokens: number;
}

export interface StepTime {
  readonly ms: number;
  /** Utilization of arithmetic and of memory bandwidth during the step, in [0, 1]. */
  readonly computeShare: number;
  readonly bandwidthShare: number;
}

export type StepTimer = (load: StepLoad) => StepTime;

/** The speed of a server by the roofline model (Williams et al. 2009). */
export interface Gpu {
  readonly name: string;
  /** Tokens per millisecond when compute-bound. */
  readonly tokensPerMs: number;
  /** Milliseconds to read the weights once: no step is shorter. */
  readonly weightsMs: number;
  /** Context tokens whose keys and values are read per millisecond. */
  readonly contextTokensPerMs: number;
  /** Token pairs of prompt attention per millisecond. */
  readonly attentionPairsPerMs: number;
  /** CPU time of a step, and of each sequence in it (next field), in milliseconds. */
  readonly overheadMs: number;
  readonly perSequenceMs: number;
  readonly kvCapacityTokens: number;
}

/** Round figures for an 8-billion-parameter model in 16 bits on three classes of hardware, fast to slow. */
export const GPUS: readonly Gpu[] = [
  {
    name: 'large',
    tokensPerMs: 42,
    weightsMs: 4.8,
    contextTokensPerMs: 26_000,
    attentionPairsPerMs: 2_400_000,
    overheadMs: 1.2,
    perSequenceMs: 0.012,
    kvCapacityTokens: 900_000,
  },
  {
    name: 'medium',
    tokensPerMs: 17,
    weightsMs: 9.4,
    contextTokensPerMs: 13_000,
    attentionPairsPerMs: 950_000,
    overheadMs: 1.6,
    perSequenceMs: 0.016,
    kvCapacityTokens: 420_000,
  },
  {
    name: 'small',
    tokensPerMs: 7.5,
    weightsMs: 17,
    contextTokensPerMs: 7_200,
    attentionPairsPerMs: 420_000,
    overheadMs: 2.2,
    perSequenceMs: 0.022,
    kvCapacityTokens: 48_000,
  },
];

export function createRooflineTimer(gpu: Gpu): StepTimer {
  return (load) => {
    const tokens = load.prefillTokens + load.decodeSequences;
    const computeMs = tokens / gpu.tokensPerMs + load.prefillAttention / gpu.attentionPairsPerMs;
    const memoryMs = gpu.weightsMs + load.decodeContextTokens / gpu.contextTokensPerMs;
    const sequences = load.decodeSequences + load.prefillSequences;
    const ms = Math.max(computeMs, memoryMs) + gpu.overheadMs + sequences * gpu.perSequenceMs;
    return { ms, computeShare: Math.min(1, computeMs / ms), bandwidthShare: Math.min(1, memoryMs / ms) };
  };
}

/** Makes every step take `factor` times as long, as on a throttled or shared GPU. */
export function scaleTimer(timer: StepTimer, factor: number): StepTimer {
  return (load) => {
    const time = timer(load);
    return { ...time, ms: factor * time.ms };
  };
}
