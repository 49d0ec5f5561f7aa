import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { createEmptyStore } from '../../../test/support/store/engines.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-model-'));
after(() => rmSync(folder, { recursive: true }));
const env = { TRIVET_DATA_DIR: join(folder, 'data') };
const trace = join(folder, 'trace.jsonl');

function toLine({ input, ttftMs, tpotMs }: ReturnType<typeof observePool>[number]): string {
  const fields = Object.entries(input).map(([name, value]) => [
    name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
    value,
  ]);
  return JSON.stringify({ ...Object.fromEntries(fields), ttft_millis: ttftMs, tpot_millis: tpotMs });
}

interface Shown {
  readonly id: string;
  readonly lineage: { readonly parameters?: Readonly<Record<string, unknown>> };
}

const lines = observePool({ rows: 300 }).map(toLine);
writeFileSync(trace, `${lines.join('\n')}\n{"ttft_millis": -4}\n`);

test('a model is trained, asked, moved to another name and rolled back', async () => {
  const trained = await runTrivet(['model', 'train', '--model', 'm', '--input', trace, '--json'], { env });
  assert.equal(trained.code, 0, trained.stderr);
  const summary = JSON.parse(trained.stdout) as { id: string; rows: object; refusals: { rows: number }[] };
  assert.equal(summary.id, 'm@1');
  assert.deepEqual(summary.rows, { total: 300, ttft: 300, tpot: 300 });
  assert.equal(summary.refusals[0]?.rows, 1);

  const shown = JSON.parse((await runTrivet(['model', 'show', 'm', '--json'], { env })).stdout) as Shown;
  const { parameters } = shown.lineage;
  assert.deepEqual(
    [parameters?.trees, parameters?.depth, parameters?.learningRate, parameters?.l2, parameters?.loss],
    [200, 6, 0.2, 3, { kind: 'absolute' }],
  );
  assert.equal(parameters?.statistic, 'p50');
  const { stdout: facts } = await runTrivet(['model', 'show', 'm'], { env });
  assert.match(facts, /^version +m@1\nserved +yes\n/);
  assert.match(facts, /^parameter +value$[\s\S]*^trees +200$[\s\S]*^l2 +3$/m);
  assert.match(facts, /^mean factor between times and the version before +× \d+\.\d\d$/m);
  assert.match(facts, /^physics: ms for one +TTFT \(all\) +TPOT \(all\)$/m);
  const table = (await runTrivet(['model', 'list', '--model', 'm'], { env })).stdout;
  assert.match(
    table,
    /^id +served +made +after +TTFT rows +MAPE % +live % +TPOT rows +MAPE % +live %\nm@1 +yes +\S+Z +- +300 +\d+\.\d +- +300 +/,
  );

  const predicted = await runTrivet(['predict', '--model', 'm', '--input', '-', '--json', '--explain'], {
    env,
    input: lines[0]!,
  });
  const answer = JSON.parse(predicted.stdout) as {
    model_version: string;
    predicted_ttft_millis: number;
    explanation: { ttft: object };
  };
  assert.equal(answer.model_version, 'm@1');
  assert.ok(answer.predicted_ttft_millis > 0);
  assert.deepEqual(Object.keys(answer.explanation.ttft), ['physics', 'treeFactors', 'serverFactor']);

  const file = join(folder, 'm.model');
  assert.equal((await runTrivet(['model', 'export', 'm@1', '--output', file], { env })).code, 0);
  assert.match((await runTrivet(['model', 'import', file, '--model', 'm'], { env })).stdout, /m@2 is served now/);
  const listed = JSON.parse((await runTrivet(['model', 'list', '--json'], { env })).stdout) as Shown[];
  assert.deepEqual(
    listed.map(({ id, lineage }) => ({ id, parameters: lineage.parameters })),
    [
      { id: 'm@2', parameters },
      { id: 'm@1', parameters },
    ],
    'what a model was learned by goes with its file',
  );
  assert.match((await runTrivet(['model', 'rollback', 'm'], { env })).stdout, /m@1 is served again/);
  const refused = await runTrivet(['model', 'rollback', 'm'], { env });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /no other version was served before/);
});

test('serving what is served already changes nothing, so that a rollback leads elsewhere', async () => {
  const promote = async (id: string) => (await runTrivet(['model', 'promote', id, '--json'], { env })).stdout;
  assert.equal(await promote('m@2'), '{"id":"m@2","changed":true}\n');
  assert.equal(await promote('m@2'), '{"id":"m@2","changed":false}\n');
  assert.match((await runTrivet(['model', 'promote', 'm@2'], { env })).stdout, /m@2 is served already/);
  assert.equal((await runTrivet(['model', 'rollback', 'm', '--json'], { env })).stdout, '{"id":"m@1","from":"m@2"}\n');
});

test('a model whose name ends as an id does is rolled back by its name', async () => {
  const name = 'claude@20240620';
  for (let version = 1; version <= 2; version++) {
    const argv = ['model', 'train', '--model', name, '--any-model', '--promote', 'true', '--input', trace, '--json'];
    const trained = await runTrivet(argv, { env });
    assert.equal(trained.code, 0, trained.stderr);
    assert.match(trained.stdout, new RegExp(`"id":"${name}@${version}"`));
  }
  const { code, stdout, stderr } = await runTrivet(['model', 'rollback', name], { env });
  assert.equal(code, 0, stderr);
  assert.match(stdout, new RegExp(`^${name}@1 is served again, in place of ${name}@2$`, 'm'));
});

const mistakes: [argv: string, code: number, message: RegExp][] = [
  ['model rollback missing', 1, /^Cannot roll back "missing": there is no such model\n$/],
  ['model rollback m@1', 2, /^Cannot roll back "m@1": give the name alone/],
  ['model list --model missing', 1, /^Cannot list the versions of "missing": there is no such model\n$/],
  ['model export m --output /no/such/folder/m', 2, /^Cannot write "\/no\/such\/folder\/m": ENOENT/],
  [`model evaluate --input ${trace} --report /no/such/folder/r.html`, 2, /^Cannot write "\/no\/such\/folder\/r.html"/],
];
for (const [argv, code, message] of mistakes)
  test(`trivet ${argv.replaceAll(folder, '')} says what is wrong`, async () => {
    const ended = await runTrivet(argv.split(' '), { env });
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, message);
  });

test('without models, the list has a line that explains it', async () => {
  const empty = { TRIVET_DATA_DIR: join(folder, 'empty') };
  await createEmptyStore(empty.TRIVET_DATA_DIR);
  const { stdout, stderr, code } = await runTrivet(['model', 'list'], { env: empty });
  assert.deepEqual([code, stdout], [0, '']);
  assert.match(stderr, /No model yet: the prior answers/);
  assert.equal((await runTrivet(['model', 'list', '--json'], { env: empty })).stdout, '[]\n');
});

test('an evaluation prints the promised JSON and writes a page that loads nothing', async () => {
  const report = join(folder, 'report.html');
  const { stdout, stderr, code } = await runTrivet(
    ['model', 'evaluate', '--input', trace, '--protocol', 'time', '--json', '--report', report],
    { env },
  );
  assert.equal(code, 0, stderr);
  const result = JSON.parse(stdout) as Record<string, Record<string, number>>;
  assert.deepEqual(Object.keys(result), ['protocol', 'ttft', 'tpot']);
  assert.deepEqual(Object.keys(result.ttft!), [
    'rows',
    'mape',
    'mdape',
    'wape',
    'bias',
    'p50_coverage',
    'p90_coverage',
    'p90_pinball',
  ]);
  // Of 90 rows, each counted or not: a share of them, and no more below the median than below the p90.
  const { p50_coverage: p50, p90_coverage: p90 } = result.ttft!;
  assert.ok(Math.abs((p50! * 90) / 100 - Math.round((p50! * 90) / 100)) < 1e-9);
  assert.ok(p50! > 20 && p50! < 80 && p50! < p90!, `${p50} % below the median, ${p90} % below the p90`);
  assert.equal(result.ttft!.rows, 90);
  const { readFileSync } = await import('node:fs');
  const page = readFileSync(report, 'utf8');
  assert.match(page, /<svg/);
  assert.doesNotMatch(page, /<script|src=|url\(|NaN|Infinity/);
});

test('input without one usable row is refused as a wrong call', async () => {
  const { code, stderr } = await runTrivet(['model', 'train', '--model', 'm', '--input', '-'], {
    env,
    input: '{"a": 1}\n',
  });
  assert.equal(code, 2);
  assert.match(stderr, /Cannot train: no row is usable/);
  assert.match(stderr, /ttft_millis or tpot_millis must be present/);
  assert.match(stderr, /Fields that are known: .*input_token_length/);
  const log = '{"run": "a", "server": "s", "start_ms": 0, "first_token_ms": 9, "end_ms": 20}\n';
  const evaluated = await runTrivet(['model', 'evaluate', '--input', '-'], { env, input: log });
  assert.equal(evaluated.code, 2);
  assert.match(evaluated.stderr, /looks like a log of requests: read it with --format requests/);
});

test('too few rows are refused by number, and leave the prior in service', async () => {
  const { code, stderr } = await runTrivet(['model', 'train', '--model', 'few', '--input', '-'], {
    env,
    input: lines.slice(0, 3).join('\n'),
  });
  assert.equal(code, 2);
  assert.match(stderr, /3 usable rows, it must be at least 20; the prior answers until then/);
  const { stdout } = await runTrivet(['predict', '--model', 'few', '--input', '-', '--json'], {
    env,
    input: lines[0]!,
  });
  assert.match(stdout, /"model_version":"prior@1"/);
});

test('a model that is worse than the prior is kept but not served, unless it is asked for', async () => {
  // What was true in the older rows is off by a hundred in the newest: of a prior's times, these are the likelier.
  const rows = lines.slice(0, 100).map((line, i) => {
    const row = JSON.parse(line) as { ttft_millis: number; tpot_millis: number };
    const factor = i < 80 ? 100 : 1;
    return JSON.stringify({ ...row, ttft_millis: row.ttft_millis * factor, tpot_millis: row.tpot_millis * factor });
  });
  const train = ['model', 'train', '--model', 'drifted', '--input', '-'];
  const kept = await runTrivet(train, { env, input: rows.join('\n') });
  assert.equal(kept.code, 0, kept.stderr);
  assert.match(kept.stdout, /drifted@1 is not served: on the newest 20 rows, .* by a factor of \d+\.\d+, the prior/);
  const forced = await runTrivet([...train, '--promote', 'true'], { env, input: rows.join('\n') });
  assert.match(forced.stdout, /drifted@2 is served now/);
  const itself = await runTrivet(['model', 'compare', 'drifted@2'], { env });
  assert.equal(itself.code, 2);
  assert.match(itself.stderr, /Cannot compare "drifted@2" with itself: say with which other version/);
  const both = await runTrivet(['model', 'compare', 'drifted@1'], { env });
  assert.match(both.stdout + both.stderr, /drifted@1 MAPE % +drifted@2 MAPE %|No samples yet/);
});

test('fields that are not used are named once', async () => {
  const misspelt = lines.slice(0, 40).map((line) => line.replace('kv_cache_usage', 'kv_cache_use'));
  const { stderr } = await runTrivet(['model', 'train', '--model', 'x', '--input', '-'], {
    env,
    input: misspelt.join('\n'),
  });
  assert.match(stderr, /Fields that are not used: kv_cache_use \(40 rows\)/);
});

test('more than 100 reasons and fields are counted together', async () => {
  const other = Array.from({ length: 300 }, (_, i) => {
    return JSON.stringify({ ...(JSON.parse(lines[0]!) as object), target_model: `m${i}`, [`f${i}`]: 1 });
  });
  const argv = ['model', 'evaluate', '--model', 'm', '--protocol', 'time', '--input', '-'];
  const { code, stderr } = await runTrivet(argv, { env, input: [...other, ...lines.slice(0, 40)].join('\n') });
  assert.equal(code, 0, stderr);
  assert.equal(stderr.match(/target_model is "m\d+"/g)?.length, 100);
  assert.match(stderr, /^ +200 +other reasons +standard input:101$/m);
  assert.match(stderr, /Fields that are not used: f0 \(1 row\), .*, f99 \(1 row\), other fields \(200 rows\)/);
});

const LOG_HEADER = 'run,server,start_ms,first_token_ms,end_ms,input_tokens,output_tokens';

/** Evaluates a log of 30 requests, its times multiplied with `unit`, and with these more columns. */
async function evaluateLog(unit: number, more: string, header = LOG_HEADER) {
  const rows = Array.from({ length: 30 }, (_, i) => {
    const times = [1000 * i, 1000 * i + 80 + (i % 7), 1000 * i + 900].map((ms) => ms * unit);
    return ['"a, first"', 's', ...times, 100, 40].join(',') + more;
  });
  const argv = ['model', 'evaluate', '--input', '-', '--format', 'requests', '--kv-capacity-tokens', '1000'];
  return runTrivet([...argv, '--protocol', 'time'], { env, input: `\uFEFF${header}\r\n${rows.join('\r\n')}\r\n` });
}

test('a log of requests is read as spreadsheets write it, and unused fields are named', async () => {
  const { code, stdout, stderr } = await evaluateLog(1, ',7', `${LOG_HEADER},user`);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^TTFT +9 /m);
  assert.match(stderr, /Fields that are not used: user \(30 rows\)/);
  assert.doesNotMatch(stderr, /in seconds/);
});

test('a log whose times are seconds is judged, and asked about', async () => {
  const { code, stderr } = await evaluateLog(0.001, '');
  assert.equal(code, 0, stderr);
  assert.match(stderr, /Are the times in seconds\? They must be in milliseconds: a first token typically takes 0\.08/);
});

test('a log with another name for a column is refused with the names that are known', async () => {
  const { code, stderr } = await evaluateLog(1, '', LOG_HEADER.replace('output_tokens', 'generated'));
  assert.equal(code, 2);
  assert.match(stderr, /30 +output_tokens must be present/);
  assert.match(stderr, /Fields that are known: run, server, start_ms,/);
});

const ROW = '{"input_token_length": 10, "ttft_millis": 100, "tpot_millis": 10}\n';

test('runs to hold out are refused where no run is held out', async () => {
  const argv = ['model', 'evaluate', '--input', '-', '--protocol', 'time', '--hold-out', 'a'];
  const { code, stderr } = await runTrivet(argv, { env, input: ROW.repeat(40) });
  assert.equal(code, 2);
  assert.match(stderr, /Cannot hold runs out with the protocol time: it must be leave-run-out/);
});

for (const command of ['model evaluate', 'model train --model copied'])
  test(`trivet ${command} names copies of rows, since errors of copies say nothing`, async () => {
    const { stderr } = await runTrivet([...command.split(' '), '--input', '-'], { env, input: ROW.repeat(40) });
    assert.match(stderr, /39 of 40 rows are copies of another one/);
  });
