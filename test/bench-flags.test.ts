import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const BENCH = 'bench/shared-history.ts';

function runBench(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BENCH, ...args], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

test('each bench reads its flags with readBenchFlags()', () => {
  const benches = globSync(['bench/*.ts', 'bench/llm-d/{large,trace}.ts']);
  assert.ok(benches.length > 20);
  const others = benches.filter((path) => !/readBenchFlags\(/.test(readFileSync(path, 'utf8')));
  assert.deepEqual(others, []);
});

test('readBenchFlags() prints the comment at the head of the bench for --help', () => {
  const { status, stdout, stderr } = runBench('--help');
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(
    stdout,
    /^Measures the value of server history[^*]+`node bench\/shared-history\.ts \[--processes 3\]`\.\n$/,
  );
});

for (const program of ['test/fleet/main.ts', 'test/fleet/process-kills.ts'])
  test(`${program} prints its options for --help`, () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--help'], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
    assert.match(stdout, /`npm run test:fleet[^`]*`, with[\s\S]+Needs Debian's/);
  });

for (const [title, args, reason] of [
  ['a flag that it does not know', ['--rows', '3'], "unknown option '--rows'"],
  ['a flag without its value', ['--processes'], "option '--processes <value>' argument missing"],
  ['an argument where it takes none', ['sqlite'], "unexpected argument 'sqlite'"],
] as const)
  test(`readBenchFlags() refuses ${title} in one line that names what is allowed`, () => {
    const stderr = `Cannot run ${BENCH}: ${reason}; allowed are --help, --processes VALUE\n`;
    assert.deepEqual(runBench(...args), { status: 2, stdout: '', stderr });
  });
