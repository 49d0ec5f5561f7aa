/** Each fixture was written by hand from the documented format. All hold the same three requests, and some that failed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BENCHMARK_FORMATS, type BenchmarkFormat } from './benchmarks/benchmarks.ts';
import { detectText } from './detect-format.ts';
import type { Format } from './read-observations.ts';
import { readTable } from './read-table.ts';

const FIXTURES: Readonly<Record<BenchmarkFormat, string>> = {
  'vllm-bench': 'vllm-bench.json',
  'inference-perf': 'inference-perf.json',
  guidellm: 'guidellm.json',
  aiperf: 'aiperf.jsonl',
  lmbench: 'lmbench.csv',
  otlp: 'otlp.jsonl',
};

function pathOf(format: BenchmarkFormat): string {
  return fileURLToPath(new URL(`benchmarks/fixtures/${FIXTURES[format]}`, import.meta.url));
}

interface Options {
  readonly format?: Format;
  readonly targetModel?: string;
  readonly server?: string;
  readonly maxRows?: number;
}

function read(path: string, options: Options = {}, text = '') {
  return readTable([path], {
    format: undefined,
    targetModel: '',
    server: '10.0.0.5:8000',
    kvCapacityTokens: 1000,
    stdin: Readable.from([Buffer.from(text)]),
    ...options,
  });
}

function readText(text: string, options: Options = {}) {
  return read('-', options, text);
}

const round = (value: number) => Number(value.toFixed(3));

/** In the order of time: TTFT, TPOT, prompt tokens, requests waiting and running at the start. */
const REQUESTS = [
  [200, 100, 100, 0, 0],
  [300, 100, 50, 0, 1],
  [100, Number.NaN, 20, 0, 0],
];
const FIRST_START_MS = 1_760_000_000_000;

for (const format of BENCHMARK_FORMATS)
  test(`${format} is refused if it has more rows than it may have`, async () => {
    const limited = read(pathOf(format), { maxRows: REQUESTS.length - 1 });
    await assert.rejects(limited, { code: 'invalid', message: /: it must have at most 2 rows$/ });
    const { table } = await read(pathOf(format), { maxRows: 100 });
    assert.equal(table.count, REQUESTS.length);
  });

for (const format of BENCHMARK_FORMATS)
  test(`${format} is detected by its content, and read as its tool means it`, async () => {
    const { table } = await read(pathOf(format));
    const rows = Array.from({ length: table.count }, (_, i) =>
      [
        table.ttftMs[i]!,
        table.tpotMs[i]!,
        table.inputTokenLength[i]!,
        table.numRequestWaiting[i]!,
        table.numRequestRunning[i]!,
      ].map(round),
    );
    assert.deepEqual(rows, REQUESTS);
    assert.equal(round(table.atMs[0]!), FIRST_START_MS);
    assert.deepEqual(table.servers, ['10.0.0.5:8000']);
  });

const refusals: [format: BenchmarkFormat, expected: [reason: string, at: string][]][] = [
  ['vllm-bench', [['the request failed', 'request 1']]],
  ['inference-perf', [['the request failed', '[1]']]],
  ['guidellm', []],
  [
    'aiperf',
    [
      ['the request was cancelled', '2'],
      ['the request is of the warm-up, metadata.benchmark_phase must be "profiling"', '3'],
      ['the request failed', '4'],
    ],
  ],
  ['lmbench', [['ttft must be more than 0: the request failed or was not streamed', '3']]],
  ['otlp', [['the request failed', '1, span 2']]],
];
for (const [format, expected] of refusals)
  test(`${format} leaves out what must not be learned: ${expected.map(([reason]) => reason).join('; ') || 'nothing'}`, async () => {
    const path = pathOf(format);
    const read1 = await read(path);
    assert.deepEqual(
      read1.refusals.map(({ reason, firstAt }) => [reason, firstAt]),
      expected.map(([reason, at]) => [reason, `${path}:${at}`]),
    );
  });

test('a file names its target model, unless one is given', async () => {
  assert.deepEqual((await read(pathOf('vllm-bench'))).table.models, ['example/llama-8b']);
  assert.deepEqual((await read(pathOf('vllm-bench'), { targetModel: 'llama' })).table.models, ['llama']);
  assert.deepEqual((await read(pathOf('otlp'))).table.models, ['llama-8b']);
});

test('GuideLLM says how much of a prompt was cached', async () => {
  const { table } = await read(pathOf('guidellm'));
  assert.deepEqual(Array.from(table.prefixCacheScore.slice(0, 3)), [0.5, 0.5, 0.5]);
});

test('spans name their server; a benchmark needs --server', async () => {
  const { table } = await readTable([pathOf('otlp')], {
    format: undefined,
    targetModel: '',
    kvCapacityTokens: 1000,
    stdin: Readable.from([]),
  });
  assert.deepEqual(table.servers, ['10.0.0.5:8000']);
  for (const format of BENCHMARK_FORMATS.filter((name) => name !== 'otlp'))
    await assert.rejects(read(pathOf(format), { server: '' }), {
      message: `Cannot read ${format}: --server must name the server that was measured`,
    });
});

type Document = Record<string, unknown>;

function change(format: BenchmarkFormat, edit: (document: Document) => void): string {
  const document = JSON.parse(readFileSync(pathOf(format), 'utf8')) as Document;
  edit(document);
  return JSON.stringify(document);
}

const mistakes: [title: string, text: string, format: BenchmarkFormat, message: RegExp][] = [
  [
    'a result without details',
    change('vllm-bench', (result) => delete result.ttfts),
    'vllm-bench',
    /ttfts must be an array; write the file with --save-result --save-detailed/,
  ],
  [
    'arrays of unlike length',
    change('vllm-bench', (result) => (result.ttfts as number[]).pop()),
    'vllm-bench',
    /ttfts must have as many entries as input_lens/,
  ],
  ['a file that is cut off', '{"input_lens": [1, 2', 'vllm-bench', /the file must be JSON.*was it cut off\?/],
  ['another file', '{"a": 1}', 'guidellm', /it is not guidellm/],
  [
    'a report without requests',
    '{"benchmarks": [{}]}',
    'guidellm',
    /benchmarks\[0\]\.requests\.successful must be an array/,
  ],
  ['brackets without end', '['.repeat(3_000_000), 'inference-perf', /nested at most 64 levels/],
];
for (const [title, text, format, message] of mistakes)
  test(`${title} is refused as ${format}`, () => assert.rejects(readText(text, { format }), message));

const rowMistakes: [title: string, text: string, reason: string][] = [
  [
    'a latency that is the TTFT',
    change('vllm-bench', (result) => Object.assign(result, { latencies: result.ttfts })),
    'start_times[] + latencies[] must be after start_times[] + ttfts[] when output_lens[] is more than 1',
  ],
  [
    'a TTFT that is a text',
    change('vllm-bench', (result) => Object.assign(result.ttfts as unknown[], { 0: 'soon', 2: 'soon', 3: 'soon' })),
    'ttfts[] must be a finite number',
  ],
  [
    'a unit that is not one of time',
    readFileSync(pathOf('aiperf'), 'utf8').replaceAll('"unit": "sec"', '"unit": "tokens"'),
    'metrics.request_latency.unit must be ns, us, ms or s',
  ],
  [
    'another unit of time in LMBench',
    readFileSync(pathOf('lmbench'), 'utf8').replaceAll(',0.2,1.0,', ',200,1000,').replaceAll(',0.3,0.5,', ',300,500,'),
    'finish_time − launch_time must be ttft + generation_time, all in seconds',
  ],
  [
    'several answers to one prompt',
    readFileSync(pathOf('otlp'), 'utf8')
      .replaceAll('gen_ai.latency.time_in_queue', 'gen_ai.request.n')
      .replaceAll('0.001', '2'),
    'gen_ai.request.n must be 1',
  ],
];
for (const [title, text, reason] of rowMistakes)
  test(`${title} is refused by the name of the field`, async () => {
    const { refusals: found } = await readText(text);
    assert.ok(
      found.some((refusal) => refusal.reason === reason),
      JSON.stringify(found),
    );
  });

test('several results of --append-result are runs of their own', async () => {
  const one = change('vllm-bench', () => {});
  const { table } = await readText(`${one}\n${one}\n`, { format: 'vllm-bench' });
  assert.equal(table.count, 6);
  assert.deepEqual(table.runs, ['standard input', 'standard input#2']);
});

test('a document of 64 KiB and more on one line is detected by its fields', () => {
  const head = `{"date":"x","model_id":"m","request_throughput":1.5,"generated_texts":["${'x'.repeat(70_000)}`.slice(
    0,
    65_536,
  );
  assert.equal(detectText(head, 'f'), 'vllm-bench');
  assert.equal(detectText('{\n  "args": {},\n  "benchmarks": [\n', 'f'), 'guidellm');
  assert.equal(detectText('{"input_token_length": 3, "ttft_millis": 5}\n', 'f'), 'json');
  assert.throws(() => detectText('[{"input_token_length": 3}]', 'f'), /must have one JSON object a line/);
});

test('a document of more than 256 MiB is refused while it is read', async () => {
  const mebibyte = Buffer.alloc(1_048_576, ' ');
  const stdin = Readable.from(Array.from({ length: 300 }, () => mebibyte));
  await assert.rejects(
    readTable(['-'], { format: 'guidellm', targetModel: '', server: 's', kvCapacityTokens: 1000, stdin }),
    /a file must be at most 256 MiB/,
  );
});

test('20,000 lines that are not of the format are counted in linear time', async () => {
  const before = process.cpuUsage();
  const { refusals: found } = await readText('{"metadata":{"request_start_ns":1}}\n[]\n'.repeat(10_000), {
    format: 'aiperf',
  });
  assert.deepEqual(
    found.map(({ rows }) => rows),
    [10_000, 10_000],
  );
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 3e6, `${(user + system) / 1e6} s of a processor`);
});
