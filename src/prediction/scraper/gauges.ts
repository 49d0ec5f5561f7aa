/** Parses the load of a server from `/metrics` (Prometheus text) of vLLM, SGLang, TensorRT-LLM and llama.cpp. */
import { Failure } from '../../errors.ts';
import { MAX_COUNT } from '../schema/input-fields.ts';

/** The load of a server, for rows without one. */
export interface ScrapedLoad {
  /** The inference engine, such as `vLLM`. */
  readonly kind: string;
  readonly waiting: number;
  readonly running: number;
  readonly kvCacheUsage: number;
  /** Tokens in the KV cache; 0 when the metrics do not show them. */
  readonly inflightTokens: number;
}

interface GaugeNames {
  readonly kind: string;
  readonly waiting: string;
  readonly running: string;
  /** The first of these metrics that is there is read; without any, the usage is 0. */
  readonly kvCacheUsage: readonly string[];
}

const SERVERS: readonly GaugeNames[] = [
  {
    kind: 'vLLM',
    running: 'vllm:num_requests_running',
    waiting: 'vllm:num_requests_waiting',
    kvCacheUsage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
  },
  {
    kind: 'SGLang',
    running: 'sglang:num_running_reqs',
    waiting: 'sglang:num_queue_reqs',
    kvCacheUsage: ['sglang:token_usage'],
  },
  {
    kind: 'TensorRT-LLM',
    running: 'trtllm_num_requests_running',
    waiting: 'trtllm_num_requests_waiting',
    kvCacheUsage: ['trtllm_kv_cache_utilization'],
  },
  {
    kind: 'llama.cpp',
    running: 'llamacpp:requests_processing',
    waiting: 'llamacpp:requests_deferred',
    kvCacheUsage: ['llamacpp:kv_cache_usage_ratio'],
  },
];

/** `text` is the Prometheus text format. Throws `invalid` for the metrics of another engine, and for impossible numbers. */
export function parseLoad(text: string): ScrapedLoad {
  const lines = `\n${text}`;
  const names = SERVERS.find(({ running }) => findSamples(lines, running).length > 0);
  if (names === undefined)
    throw new Failure(
      'invalid',
      `Cannot read the metrics: one of ${SERVERS.map(({ running }) => running).join(', ')} must be among them`,
    );
  const kvCacheUsage = readUsage(lines, names.kvCacheUsage);
  return {
    kind: names.kind,
    running: readCount(lines, names.running),
    waiting: readCount(lines, names.waiting),
    kvCacheUsage,
    inflightTokens: Math.min(MAX_COUNT, Math.round(readTokens(lines, kvCacheUsage))),
  };
}

/** Returns the sum over the engines behind one address. */
function readCount(lines: string, name: string): number {
  const values = findSamples(lines, name).map(({ value }) => checkRange(name, value, MAX_COUNT));
  if (values.length === 0) throw new Failure('invalid', `Cannot read the metrics: ${name} must be among them`);
  return Math.min(
    MAX_COUNT,
    values.reduce((sum, value) => sum + value, 0),
  );
}

/** Returns the mean over the engines behind one address. */
function readUsage(lines: string, names: readonly string[]): number {
  for (const name of names) {
    const values = findSamples(lines, name).map(({ value }) => checkRange(name, value, 1));
    if (values.length > 0) return values.reduce((sum, value) => sum + value, 0) / values.length;
  }
  return 0;
}

const SGLANG_TOKENS = 'sglang:num_used_tokens';
const VLLM_CACHE = 'vllm:cache_config_info';

function readTokens(lines: string, kvCacheUsage: number): number {
  const used = findSamples(lines, SGLANG_TOKENS);
  if (used.length > 0) return readCount(lines, SGLANG_TOKENS);
  const capacity = findSamples(lines, VLLM_CACHE).reduce((sum, { labels }) => sum + readCapacity(labels), 0);
  return kvCacheUsage * capacity;
}

/** vLLM reports the size of its cache in labels: the number of blocks, and the tokens in each. */
function readCapacity(labels: string): number {
  const [, blocks] = /\bnum_gpu_blocks="(\d{1,9})"/.exec(labels) ?? [];
  const [, tokens] = /\bblock_size="(\d{1,9})"/.exec(labels) ?? [];
  return Number(blocks ?? 0) * Number(tokens ?? 0);
}

function checkRange(name: string, value: number, most: number): number {
  if (value >= 0 && value <= most) return value;
  throw new Failure('invalid', `Cannot read the metrics: ${name} must be a number from 0 to ${most}`);
}

interface Sample {
  readonly labels: string;
  readonly value: number;
}

/** At most this many samples of one metric are read: engines have few sets of labels. */
const MAX_SAMPLES = 1024;

/** Searches the text instead of splitting it: most lines are histograms, which are not needed. */
function findSamples(lines: string, name: string): Sample[] {
  const samples: Sample[] = [];
  const start = `\n${name}`;
  for (let at = lines.indexOf(start); at !== -1; at = lines.indexOf(start, at + 1)) {
    const after = at + start.length;
    const end = lines.indexOf('\n', after);
    const sample = readSample(lines.slice(after, end === -1 ? lines.length : end));
    if (sample !== undefined && samples.push(sample) >= MAX_SAMPLES) break;
  }
  return samples;
}

/** `rest` is the line after the name. Undefined if the name in the line is longer. A timestamp may follow the value. */
function readSample(rest: string): Sample | undefined {
  const first = rest[0];
  if (first !== '{' && first !== ' ' && first !== '\t') return undefined;
  const labelsEnd = first === '{' ? rest.lastIndexOf('}') + 1 : 0;
  const [value = ''] = rest.slice(labelsEnd).trim().split(/\s/, 1);
  return { labels: rest.slice(0, labelsEnd), value: value === '' ? Number.NaN : Number(value) };
}
