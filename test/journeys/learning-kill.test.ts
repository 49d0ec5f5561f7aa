/**
 * `kill -9` while the service takes reports and learns from them: nothing that was acknowledged is lost or counted
 * twice, no version is half written, and what answers afterwards is what answered before, or a later version that was
 * promoted durably. TRIVET_LONG=1 makes it 40 lives.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Statement, type Store, statement } from '../../src/database/store.ts';
import { decodeModel } from '../../src/prediction/model/model-codec.ts';
import { listModelVersions, readModelFile } from '../../src/prediction/registry/model-store.ts';
import { createRandom } from '../../src/prediction/simulator/random-draws.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, openTestStore, type StorePlace } from '../support/store/engines.ts';

const LIVES = process.env.TRIVET_LONG === '1' ? 40 : 5;
/** A model that is killed while it is learned rests until its lease has run out: others take its place. */
const MODELS = Array.from({ length: LIVES }, (_, life) => `m${life}`);
const EVENTS_A_CALL = 20;
/**
 * Of each model: far below what it keeps of the newest (see sample-keeper.ts), so that every report has to be there
 * however long a life is; and few enough that a training ends within a life on a busy machine, where learning waits.
 */
const MOST_REPORTS = 6000;
const ENVIRONMENT = { PREDICTION_REFIT_ROWS: '60', PREDICTION_REFIT_SECONDS: '2', LOG_LEVEL: 'warn' };

const random = createRandom(5);

interface Reporter {
  readonly model: string;
  /** Each report has a prompt length of its own, by which its sample is known. */
  acknowledged: number;
  /** The version that answered last: 0 is the prior. */
  version: number;
}

/**
 * Goes on until the program dies; with enough reports it only looks at the answers. Reports that were not acknowledged are
 * sent again in the next life.
 */
async function keepReporting(program: Program, reporter: Reporter): Promise<void> {
  let isUp = true;
  while (isUp) {
    if (reporter.acknowledged < MOST_REPORTS) await report(program, reporter);
    isUp = await checkAnswer(program, reporter);
    // The pace of the reports: without it, they would be over before the program learns from them.
    await sleep(50);
  }
}

async function report(program: Program, reporter: Reporter): Promise<void> {
  const lengths = Array.from({ length: EVENTS_A_CALL }, (_, i) => reporter.acknowledged + i + 1);
  const answer = await post(program, 'observation.v1.ObservationService/ReportBatch', {
    events: lengths.map((length) => createEvent(reporter.model, length)),
  });
  if (answer === undefined) return;
  const { accepted, refused, refusals } = answer as { accepted: number; refused: number; refusals?: object[] };
  // Reports that are sent again after a kill may be known already.
  assert.equal(Number(accepted) + Number(refused), EVENTS_A_CALL);
  for (const { reason } of (refusals ?? []) as { reason: string }[]) assert.match(reason, /was reported already/);
  reporter.acknowledged += EVENTS_A_CALL;
}

function createEvent(model: string, length: number) {
  const running = length % 17;
  return {
    observation: {
      requestId: `${model}-${length}`,
      targetModel: model,
      input: { inputTokenLength: length, numRequestRunning: running, serverIp: `10.0.0.${length % 5}` },
      // Ever slower, so that a challenger has something to be better at.
      ttftMillis: (40 + length * 0.2 + running * 5) * (1 + length / 300),
      tpotMillis: (5 + running) * (1 + length / 300),
    },
  };
}

/** Undefined when the program is gone: the outcome of the call is then unknown. */
async function post(program: Program, path: string, body: object): Promise<unknown> {
  try {
    const response = await fetch(`${program.httpUrl}/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const json = await response.json();
    assert.equal(response.status, 200, JSON.stringify(json));
    return json;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return undefined;
  }
}

/** False when the program is gone. */
async function checkAnswer(program: Program, reporter: Reporter): Promise<boolean> {
  const inputs = [{ inputTokenLength: 300, serverIp: '10.0.0.1' }];
  const answer = await post(program, 'prediction.v1.PredictionService/Predict', {
    targetModel: reporter.model,
    inputs,
  });
  if (answer === undefined) return false;
  const { outputs, metadata } = answer as {
    outputs: { predictedTtftMillis: number; predictedTpotMillis: number }[];
    metadata: { modelVersion: string };
  };
  assert.ok(outputs[0]!.predictedTtftMillis > 0 && outputs[0]!.predictedTpotMillis > 0);
  const version = metadata.modelVersion === 'prior@1' ? 0 : Number(metadata.modelVersion.split('@')[1]);
  assert.ok(version >= reporter.version, `${metadata.modelVersion} answers after version ${reporter.version}`);
  reporter.version = version;
  return true;
}

/** Kills in turn: just after a training has begun, at a random moment, just after a version was promoted. */
async function waitForTheEnd(life: number, place: StorePlace): Promise<void> {
  if (life % 3 === 1) {
    await sleep(500 + 3000 * random());
    return;
  }
  const sql =
    life % 3 === 0
      ? "SELECT SUM(epoch) AS sum FROM leases WHERE name LIKE 'trainer:%'"
      : 'SELECT SUM(promoted_version) AS sum FROM models';
  const database = new DatabaseSync(join(place.dataDir, 'trivet.db'), { readOnly: true });
  const query = database.prepare(sql);
  const readSum = () => Number(query.get()?.sum ?? 0);
  const before = readSum();
  const endMs = Date.now() + 60_000;
  await waitUntil(() => readSum() !== before || Date.now() >= endMs, 2);
  database.close();
  // A moment by chance within the training or after the promotion.
  await sleep(300 * random());
}

const sampledLengthsSql: Statement<{ input_token_length: number }> = statement(
  'test-sampled-lengths',
  'SELECT input_token_length FROM samples WHERE target_model = $1 ORDER BY input_token_length',
);
const heldLeasesSql: Statement<{ name: string; epoch: number }> = statement(
  'test-held-trainer-leases',
  "SELECT name, epoch FROM leases WHERE name LIKE 'trainer:%' AND expires_at_ms > $1",
);

async function checkStore(store: Store, reporters: readonly Reporter[]): Promise<number> {
  let versionCount = 0;
  for (const { model, acknowledged, version } of reporters) {
    const lengths = (await store.read(sampledLengthsSql, [model])).map((row) => row.input_token_length);
    assert.equal(new Set(lengths).size, lengths.length, `a report of ${model} counts twice`);
    const known = new Set(lengths);
    for (let length = 1; length <= acknowledged; length++)
      assert.ok(known.has(length), `report ${length} of ${model} was acknowledged and is lost`);

    const versions = await listModelVersions(store, model);
    versionCount += versions.length;
    for (const each of versions) {
      const file = await readModelFile(store, model, each.version);
      assert.equal(decodeModel(file).id, `${model}@${each.version}`);
    }
    const promoted = versions.find((each) => each.isPromoted);
    assert.ok((promoted?.version ?? 0) >= version, `version ${version} of ${model} answered and is not promoted`);
  }
  return versionCount;
}

test(`kill -9 in ${LIVES} lives of reporting and learning loses nothing and leaves nothing half done`, async (t) => {
  const place = await createStorePlace('sqlite');
  try {
    const reporters = MODELS.map((model): Reporter => ({ model, acknowledged: 0, version: 0 }));
    /** Trainings that a kill ended: their leases were never given back. */
    const cutShort = new Set<string>();
    let versions = 0;
    for (let life = 0; life < LIVES; life++) {
      const program = await startProgram(ENVIRONMENT, place.dataDir);
      const alive = reporters.slice(Math.max(0, life - 2), life + 1);
      // What was served before the kill is served from the first answer on.
      for (const reporter of reporters) await checkAnswer(program, reporter);
      const reports = alive.map((reporter) => keepReporting(program, reporter));
      await Promise.race([waitForTheEnd(life, place), Promise.all(reports)]);
      const nowMs = Date.now();
      await program.kill();
      await Promise.all(reports);
      await using store = await openTestStore(place);
      for (const { name, epoch } of await store.read(heldLeasesSql, [nowMs])) cutShort.add(`${name} ${epoch}`);
      versions = await checkStore(store, reporters);
    }
    const acknowledged = reporters.reduce((sum, reporter) => sum + reporter.acknowledged, 0);
    t.diagnostic(`${acknowledged} reports, ${versions} versions, ${cutShort.size} trainings cut short`);
    assert.ok(acknowledged > 0 && cutShort.size > 0 && versions > 0);
  } finally {
    rmSync(place.dataDir, { recursive: true, force: true, maxRetries: 20 });
  }
});
