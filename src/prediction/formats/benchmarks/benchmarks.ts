/** Lists the formats of benchmarks and traces, and detects which one a file has. */
import { isAiperf, readAiperf } from './aiperf.ts';
import { isGuidellm, readGuidellm } from './guidellm.ts';
import { isInferencePerf, readInferencePerf } from './inference-perf.ts';
import { isLmbench, readLmbench } from './lmbench.ts';
import { isOtlpLine, readOtlpLine } from './otlp-lines.ts';
import type { BenchmarkContext, BenchmarkRow } from './row.ts';
import { isVllmBench, readVllmBench } from './vllm-bench.ts';

export const BENCHMARK_FORMATS = ['vllm-bench', 'inference-perf', 'guidellm', 'aiperf', 'lmbench', 'otlp'] as const;
export type BenchmarkFormat = (typeof BENCHMARK_FORMATS)[number];

type SourcedField = 'start_ms' | 'first_token_ms' | 'end_ms' | 'input_tokens' | 'output_tokens';

export interface Benchmark {
  /** A whole JSON document, one JSON object a line, or rows of CSV. */
  readonly shape: 'document' | 'lines' | 'csv';
  /** True if the file names its servers. */
  readonly namesServers: boolean;
  /** Returns true if a document, a line or a row of CSV has this format. */
  readonly matches: (value: unknown) => boolean;
  /** Detects a document by its first 64 KiB. */
  readonly mark: RegExp | undefined;
  /** The fields of the file from which each field of a record is computed, for refusals. */
  readonly sources: Readonly<Record<SourcedField, string>>;
  readonly read: (value: unknown, context: BenchmarkContext) => Iterable<BenchmarkRow>;
}

export const BENCHMARKS: Readonly<Record<BenchmarkFormat, Benchmark>> = {
  'vllm-bench': {
    shape: 'document',
    namesServers: false,
    matches: isVllmBench,
    mark: /"(?:input_lens|request_throughput)"\s*:/,
    sources: {
      start_ms: 'start_times[]',
      first_token_ms: 'start_times[] + ttfts[]',
      end_ms: 'start_times[] + latencies[]',
      input_tokens: 'input_lens[]',
      output_tokens: 'output_lens[]',
    },
    read: readVllmBench,
  },
  'inference-perf': {
    shape: 'document',
    namesServers: false,
    matches: isInferencePerf,
    mark: /^\[[\s\S]*"start_time"\s*:/,
    sources: {
      start_ms: 'start_time',
      first_token_ms: 'info.response_metrics.output_token_times',
      end_ms: 'the last of info.response_metrics.output_token_times',
      input_tokens: 'info.request_metrics.text.input_tokens',
      output_tokens: 'info.response_metrics.output_tokens',
    },
    read: readInferencePerf,
  },
  guidellm: {
    shape: 'document',
    namesServers: false,
    matches: isGuidellm,
    mark: /"(?:guidellm_version|benchmarks)"\s*:/,
    sources: {
      start_ms: 'info.timings.request_start',
      first_token_ms: 'info.timings.first_token_iteration',
      end_ms: 'info.timings.last_token_iteration',
      input_tokens: 'prompt_tokens',
      output_tokens: 'output_tokens',
    },
    read: readGuidellm,
  },
  aiperf: {
    shape: 'lines',
    namesServers: false,
    matches: isAiperf,
    mark: /"request_start_ns"\s*:/,
    sources: {
      start_ms: 'metadata.request_start_ns',
      first_token_ms: 'metadata.request_start_ns + metrics.time_to_first_token',
      end_ms: 'metadata.request_start_ns + metrics.request_latency',
      input_tokens: 'metrics.input_sequence_length',
      output_tokens: 'metrics.output_sequence_length',
    },
    read: readAiperf,
  },
  lmbench: {
    shape: 'csv',
    namesServers: false,
    matches: isLmbench,
    mark: undefined,
    sources: {
      start_ms: 'launch_time',
      first_token_ms: 'launch_time + ttft',
      end_ms: 'launch_time + ttft + generation_time',
      input_tokens: 'prompt_tokens',
      output_tokens: 'generation_tokens',
    },
    read: readLmbench,
  },
  otlp: {
    shape: 'lines',
    namesServers: true,
    matches: isOtlpLine,
    mark: /"resourceSpans"\s*:/,
    sources: {
      start_ms: 'startTimeUnixNano',
      first_token_ms: 'startTimeUnixNano + gen_ai.latency.time_to_first_token',
      end_ms: 'startTimeUnixNano + gen_ai.latency.e2e',
      input_tokens: 'gen_ai.usage.prompt_tokens',
      output_tokens: 'gen_ai.usage.completion_tokens',
    },
    read: readOtlpLine,
  },
};

/** Replaces the names of our fields in a refusal with those of the file. */
export function toFileWords(format: BenchmarkFormat, refusal: string): string {
  const { sources } = BENCHMARKS[format];
  return refusal.replaceAll(/\b[a-z_]+\b/g, (word) =>
    Object.hasOwn(sources, word) ? sources[word as SourcedField] : word,
  );
}
