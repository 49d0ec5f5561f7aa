/** Lists every parser of untrusted bytes, with the worst input that it accepts. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parse as parseCookies } from 'hono/utils/cookie';
import { parquetWriteFile } from 'hyparquet-writer';
import { checkRegistrableUri } from '../../../src/authorization/applications/redirect-uri.ts';
import { readClient } from '../../../src/authorization/oauth/protocol/client-authentication.ts';
import { parseReturnTo } from '../../../src/authorization/sign-in/return-to.ts';
import { refusalOf } from '../../../src/grpc/call/refused-request.ts';
import { checkToken } from '../../../src/grpc/call/require-caller.ts';
import { HpackDecoder } from '../../../src/grpc/hpack/hpack-decoder.ts';
import { FORM_MAX_BYTES } from '../../../src/http/body/limit-body.ts';
import { parseJsonObject } from '../../../src/http/body-fields.ts';
import { createAddressReader } from '../../../src/http/client-address.ts';
import { readForm } from '../../../src/http/endpoint.ts';
import { checkQuery, parseJson, parsePairs } from '../../../src/http/parser-limits.ts';
import { negotiateLanguage } from '../../../src/language/language.ts';
import { PredictRequestDecoder } from '../../../src/prediction/api/predict-codec-request.ts';
import { readJsonRequest } from '../../../src/prediction/api/predict-json.ts';
import { parseJsonText, splitLines } from '../../../src/prediction/api/rpc-body.ts';
import { parseLightgbmText } from '../../../src/prediction/formats/lightgbm-text.ts';
import type { Format } from '../../../src/prediction/formats/read-observations.ts';
import { readTable } from '../../../src/prediction/formats/read-table.ts';
import { readOtlpJson } from '../../../src/prediction/formats/spans/otlp-json.ts';
import { readOtlpProtobuf } from '../../../src/prediction/formats/spans/otlp-protobuf.ts';
import { parseXgboostJson } from '../../../src/prediction/formats/xgboost-json.ts';
import { cutLists } from '../../../src/prediction/llm-d/cut-lists.ts';
import { decodeEvent, splitBatch } from '../../../src/prediction/observations/event-codec.ts';
import { createPredictColumns } from '../../../src/prediction/schema/columns.ts';
import { parseLoad } from '../../../src/prediction/scraper/gauges.ts';
import { readTraceparent } from '../../../src/telemetry/trace-id.ts';
import { parseTargetUrl } from '../../../src/webhooks/addresses/destination-url.ts';
import { createLogParser } from '../../../src/webhooks/git/read-commits.ts';
import { parseUpdates } from '../../../src/webhooks/git/read-push.ts';

export interface HostileInput {
  readonly parser: string;
  readonly input: string;
  /** The largest that is taken. */
  readonly maxBytes: number;
  /** Makes an input of about that size, and returns how it is read. Refusals may be thrown. */
  readonly prepare: (bytes: number) => () => unknown;
}

const KIB = 1024;
const MIB = 1024 * KIB;
/** The most bytes of a request's line and fields together that Node takes. */
const HEAD_BYTES = 15 * KIB;
const BODY_BYTES = MIB;
const folder = mkdtempSync(join(tmpdir(), 'trivet-parsers-'));

type Read = (text: string) => unknown;

/** The same text again and again. */
function repeated(parser: string, maxBytes: number, read: Read): (input: string, text: string) => HostileInput {
  return (input, text) => ({
    parser,
    input,
    maxBytes,
    prepare: (bytes) => {
      const whole = text.repeat(Math.floor(bytes / Buffer.byteLength(text)));
      return () => read(whole);
    },
  });
}

const form = repeated('forms', FORM_MAX_BYTES, (text) => {
  parsePairs(text);
});
const query = repeated('URLs', HEAD_BYTES, (text) => {
  checkQuery(`/?${text}`);
});
const url = repeated('URLs', HEAD_BYTES, (text) => URL.canParse(`/${text}`, 'http://self.invalid'));
const returnTo = repeated('URLs', 12_000, (text) => parseReturnTo(`/${text}`));
const redirect = repeated('URLs', 1990, (text) => checkRegistrableUri(`http://a${text}`, { isPublic: true }));
const target = repeated('URLs', 2040, (text) => parseTargetUrl(`http://${text}`));
const json = repeated('JSON', BODY_BYTES, parseJson);
const jsonObject = repeated('JSON', BODY_BYTES, (text) => parseJsonObject(`{${text}"a":1}`, 'application/json'));
const jsonText = repeated('JSON', BODY_BYTES, (text) => parseJsonText(`[${text}1e400]`));
const cookie = repeated('cookies', HEAD_BYTES, (text) => {
  parseCookies(text);
  parseCookies(text, '__Host-session');
});
const readAddress = createAddressReader(['127.0.0.0/8', '::1']);
const header = repeated('headers', HEAD_BYTES, async (text) => {
  readAddress({ remoteAddress: '127.0.0.1' }, text);
  readTraceparent(text);
  refusalOf(new Map([['content-type', `application/grpc${text}`]]));
  const caller = { header: () => `bearer ${text}`, isLoopback: false };
  await checkToken({ mode: 'on', verifyToken: () => Promise.resolve(undefined) }, caller, 'predict');
});
const languages = repeated('headers', HEAD_BYTES, negotiateLanguage);
const noParameters = { values: new Map<string, string>(), inQuery: new Set<string>() };
const basic = repeated('Basic', HEAD_BYTES, (text) =>
  readClient(`Basic ${text}`, noParameters as unknown as Parameters<typeof readClient>[1]),
);
const basicOf = repeated('Basic', Math.floor((HEAD_BYTES * 3) / 4), (text) =>
  readClient(
    `Basic ${Buffer.from(`a${text}:b`).toString('base64')}`,
    noParameters as unknown as Parameters<typeof readClient>[1],
  ),
);
const readUpload = (boundary: string) => (text: string) => {
  const body = { text: async () => text, arrayBuffer: async () => new Uint8Array(Buffer.from(text)).buffer };
  return readForm(`multipart/form-data; boundary=${boundary}`, body);
};
const multipart = (boundary: string) => repeated('multipart', FORM_MAX_BYTES, readUpload(boundary));
const PART = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n';

const hpack = repeated('HPACK', 96 * KIB, (text) => new HpackDecoder().decode(Buffer.from(text, 'latin1')));
const event = repeated('protobuf', BODY_BYTES, (text) => decodeEvent(Buffer.from(text, 'latin1')));
const batch = repeated('protobuf', BODY_BYTES, (text) => splitBatch(Buffer.from(text, 'latin1'), BODY_BYTES));
const predict = repeated('protobuf', BODY_BYTES, (text) =>
  new PredictRequestDecoder(createPredictColumns(64)).decode(Buffer.from(text, 'latin1')),
);
const predictJson = repeated('JSON', BODY_BYTES, (text) =>
  readJsonRequest(parseJsonText(`{"inputs":[${text}{}]}`), createPredictColumns(64)),
);
const lines = repeated('JSON lines', BODY_BYTES, (text) => splitLines(new Uint8Array(Buffer.from(text, 'latin1'))));

const rows = repeated('llm-d rows', BODY_BYTES, (text) => [...cutLists(`{"entries":[${text}{}]}`)]);
const spans = repeated('spans', BODY_BYTES, (text) => [...readOtlpJson(parseJson(`{"resourceSpans":[${text}{}]}`))]);
const spansOfBytes = repeated('spans', BODY_BYTES, (text) => readOtlpProtobuf(Buffer.from(text, 'latin1')));
const metrics = repeated('metrics of servers', BODY_BYTES, (text) => parseLoad(`vllm:num_requests_running 1\n${text}`));

/** A line may have 4 MiB, and files any length: what is linear shows with less. */
const FILE_BYTES = MIB;

function file(format: Format, parser: string, prefix = ''): (input: string, text: string) => HostileInput {
  return repeated(parser, FILE_BYTES, (text) =>
    readTable(['-'], {
      format,
      targetModel: 'm',
      kvCapacityTokens: 10_000,
      stdin: Readable.from([Buffer.from(prefix + text)]),
    }),
  );
}
const jsonl = file('jsonl', 'JSON lines');
const csv = file('csv', 'CSV', 'pod_type,input_token_length,ttft_millis\n');
const csvHeader = file('csv', 'CSV');
const logs = file('requests', 'JSON lines');
const xgboost = repeated('XGBoost', FILE_BYTES, (text) => parseXgboostJson(`{"learner":[${text}0]}`));
const lightgbm = repeated('LightGBM', FILE_BYTES, (text) =>
  parseLightgbmText(
    `tree\nobjective=regression\nnum_tree_per_iteration=1\nmax_feature_idx=0\nfeature_names=a\n${text}\nend of trees\n`,
  ),
);
const gitLog = repeated('git output', FILE_BYTES, (text) => {
  const parser = createLogParser();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 100) parser.push(bytes.subarray(at, at + 100));
  return parser.listCommits();
});
const gitUpdates = repeated('git output', MIB, (text) => parseUpdates(Buffer.from(text)));
const COMMIT = `${'a'.repeat(40)}\0${'b'.repeat(40)}\0\0a\0b\0c\0d\0${'1 +0000'}\0x <y>\0m\0`;

function writeRows(name: string, value: (row: number) => string): HostileInput {
  return {
    parser: 'Parquet',
    input: name,
    maxBytes: MIB,
    prepare: (bytes) => {
      const filename = join(folder, `${name}-${bytes}.parquet`);
      const rows = Array.from({ length: Math.floor(bytes / 32) }, (_, row) => row);
      const numbers = rows.map((row) => row + 1);
      const columnData = [
        { name: 'pod_type', data: rows.map(value), type: 'STRING' as const },
        { name: 'input_token_length', data: numbers, type: 'INT32' as const },
        { name: 'ttft_millis', data: numbers.map((row) => row + 0.5), type: 'DOUBLE' as const },
      ];
      parquetWriteFile({ filename, columnData, codec: 'SNAPPY' });
      return () => readTable([filename], { format: 'parquet', targetModel: 'm', stdin: Readable.from([]) });
    },
  };
}

export const hostileInputs: readonly HostileInput[] = [
  form('names without values', 'a&'),
  form('escapes', '%41'),
  form('broken escapes', '%'),
  query('pairs', 'a&'),
  url('dots', 'a/../'),
  url('escapes', '%2e/'),
  url('backslashes', '\\'),
  returnTo('escaped dots', '/%2e%2e'),
  returnTo('what becomes longer', 'ä'),
  redirect('dots', '/.'),
  redirect('a port of many digits', ':0'),
  target('labels', 'a.'),
  target('digits', '0'),
  target('credentials', 'a@'),
  json('arrays in arrays', '['),
  json('quotes', '"'),
  json('backslashes in a string', '"\\'),
  json('empty arrays', '[],'),
  jsonObject('many names', '"a":1,'),
  jsonObject('escaped names', '"\\u0061":{"b":[]},'),
  jsonText('numbers that a double cannot hold', '1e400,'),
  predictJson('inputs', '{"podType":"a","serverIp":"b"},'),
  predictJson('unknown fields', '{"a":{"b":[1]}},'),
  cookie('pairs', 'a=b;'),
  cookie('nothing but separators', ';'),
  cookie('spaces', ' '),
  cookie('escapes', 'a=%41%;'),
  header('commas', '::1,'),
  header('trusted hops', '127.0.0.1, '),
  header('spaces', ' '),
  header('separators', ';'),
  header('traces', '00-'),
  languages('languages', 'a;q=0,'),
  languages('weights of many digits', 'a;q=0.0'),
  languages('separators', ';'),
  basic('padding', '='),
  basic('base64', 'AAAA'),
  basic('spaces', ' '),
  basicOf('escapes', '%41'),
  basicOf('broken escapes', '%'),
  basicOf('plus signs', '+'),
  multipart('b')('parts', PART),
  multipart('b')('what begins like a boundary', '\r\n--'),
  multipart('b')('no part', 'a'),
  multipart(`${'a'.repeat(69)}b`)('what nearly is a long boundary', `\r\n--${'a'.repeat(69)}`),
  multipart('b')('a head without an end', '--b\r\na: b\r\n'),
  hpack('references', '\x82'),
  hpack('integers without an end', '\xff'),
  hpack('sizes of the table', '\x20'),
  hpack('entries for the table', '\x40\x01a\x01b'),
  hpack('Huffman code', `\x00\x01a\xfe${'\x1f'.repeat(126)}`),
  event('empty events of changing kinds', '\x0a\x00\x12\x00'),
  event('groups', '\x0b'),
  event('integers without an end', '\xff'),
  batch('empty events', '\x0a\x00'),
  predict('empty inputs', '\x12\x00'),
  predict('unknown fields', '\x7a\x00'),
  lines('empty lines', '\n'),
  lines('lines that are not UTF-8', '\xff\n'),
  rows('empty rows', '{},'),
  rows('unknown fields', '{"a":[1]},'),
  spans('empty resources', '{},'),
  spans('spans', '{"scopeSpans":[{"spans":[{"name":"a","attributes":[{"key":"a"}]}]}]},'),
  spansOfBytes('empty resources', '\x0a\x00'),
  spansOfBytes('groups', '\x0b'),
  metrics('samples', 'vllm:num_requests_running{a="b"} 1\n'),
  metrics('names that go on', 'vllm:num_requests_running'),
  metrics('labels without an end', 'vllm:num_requests_running{a="'),
  metrics('spaces', ' '),
  jsonl('empty objects', '{}\n'),
  jsonl('brackets', '['),
  jsonl('rows', '{"pod_type":"a","input_token_length":1,"ttft_millis":1}\n'),
  logs(
    'rows',
    '{"run":"a","server":"s","start_ms":0,"first_token_ms":10,"end_ms":110,"input_tokens":9,"output_tokens":5}\n',
  ),
  csv('rows', 'a,1,2\n'),
  csv('quotes', '"'),
  csv('quoted fields', '"a""b",'),
  csv('fields', ','),
  csvHeader('names', 'a,'),
  writeRows('texts that are all different', (row) => `p${row}`),
  writeRows('one text', () => 'a'),
  xgboost('empty trees', '{},'),
  xgboost('numbers', '1,'),
  lightgbm('trees', 'Tree=0\n'),
  lightgbm('what nearly is a tree', 'Tree=0 0\n'),
  lightgbm('digits', 'Tree=00'),
  lightgbm('line ends', '\n'),
  gitLog('commits', COMMIT),
  gitLog('separators', '\0'),
  gitLog('one piece', 'a'),
  gitLog('commits of many paths', `${COMMIT}${'A\0path\0'.repeat(20)}`),
  gitUpdates('digits', '0'),
  gitUpdates('updates', `${'0'.repeat(40)} ${'1'.repeat(40)} refs/heads/a\n`),
];

/** Ignores a refusal, which is a valid result. */
export async function settle(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch {}
}
