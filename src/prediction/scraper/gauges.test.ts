import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLoad, type ScrapedLoad } from './gauges.ts';

const VLLM = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="llama"} 12.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="llama"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="llama"} 0.25
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000",sliding_window="None"} 1.0
`;

const cases: [title: string, text: string, load: ScrapedLoad][] = [
  ['vLLM', VLLM, { kind: 'vLLM', waiting: 3, running: 12, kvCacheUsage: 0.25, inflightTokens: 4000 }],
  [
    'vLLM of before, with a time',
    'vllm:num_requests_running 1 1760000000000\nvllm:num_requests_waiting 0\nvllm:gpu_cache_usage_perc 0.5\n',
    { kind: 'vLLM', waiting: 0, running: 1, kvCacheUsage: 0.5, inflightTokens: 0 },
  ],
  [
    'two engines of vLLM',
    `${VLLM}${VLLM.replaceAll('engine="0"', 'engine="1"').replace(' 0.25', ' 0.75')}`,
    { kind: 'vLLM', waiting: 6, running: 24, kvCacheUsage: 0.5, inflightTokens: 16_000 },
  ],
  [
    'SGLang',
    'sglang:num_running_reqs{model_name="a}b"} 4\nsglang:num_queue_reqs{} 2\nsglang:token_usage 0.1\nsglang:num_used_tokens 900\n',
    { kind: 'SGLang', waiting: 2, running: 4, kvCacheUsage: 0.1, inflightTokens: 900 },
  ],
  [
    'TensorRT-LLM',
    'trtllm_num_requests_running 5\r\ntrtllm_num_requests_waiting 1\r\ntrtllm_kv_cache_utilization 0.9\r\n',
    { kind: 'TensorRT-LLM', waiting: 1, running: 5, kvCacheUsage: 0.9, inflightTokens: 0 },
  ],
  [
    'llama.cpp without a use of its cache',
    'llamacpp:requests_processing 2\nllamacpp:requests_deferred 7\n',
    { kind: 'llama.cpp', waiting: 7, running: 2, kvCacheUsage: 0, inflightTokens: 0 },
  ],
];
for (const [title, text, load] of cases)
  test(`parseLoad() reads ${title}`, () => assert.deepEqual(parseLoad(text), load));

const [RUNNING, WAITING, USAGE] = [
  'vllm:num_requests_running',
  'vllm:num_requests_waiting',
  'vllm:kv_cache_usage_perc',
];
const refusals: [title: string, text: string, message: RegExp][] = [
  [
    'another program',
    'node_load1 3\n',
    /one of vllm:num_requests_running, .*llamacpp:requests_processing must be among them/,
  ],
  ['an empty answer', '', /must be among them/],
  ['a missing queue', `${RUNNING} 3\n`, /num_requests_waiting must be among them/],
  ['NaN', `${RUNNING} NaN\n${WAITING} 0\n`, /num_requests_running must be a number from 0 to 2147483647/],
  ['1e308', `${RUNNING} 1\n${WAITING} 1e308\n`, /num_requests_waiting must be a number from 0/],
  ['infinity', `${RUNNING} 1\n${WAITING} +Inf\n`, /num_requests_waiting must be a number from 0/],
  ['less than nothing', `${RUNNING} -1\n${WAITING} 0\n`, /num_requests_running must be a number from 0/],
  [
    'percent for a ratio',
    `${RUNNING} 1\n${WAITING} 0\n${USAGE} 45\n`,
    /kv_cache_usage_perc must be a number from 0 to 1/,
  ],
  ['no value', `${RUNNING} \n${WAITING} 0\n`, /num_requests_running must be a number/],
];
for (const [title, text, message] of refusals)
  test(`parseLoad() refuses ${title}`, () => assert.throws(() => parseLoad(text), message));

test('parseLoad() takes linear time for 2 MiB of anything', () => {
  const before = process.cpuUsage();
  for (const piece of [
    'vllm:num_requests_running{',
    '\n',
    'vllm:num_requests_running 1\n',
    '}',
    'vllm:num_requests_running{a="}',
  ])
    try {
      parseLoad(piece.repeat(2_097_152 / piece.length));
    } catch {
      // Refused or read, as long as it ends.
    }
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 3e6, `${(user + system) / 1e6} s of a processor`);
});
