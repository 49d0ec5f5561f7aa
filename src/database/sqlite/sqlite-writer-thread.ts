/**
 * Writes to SQLite in a thread: one transaction takes every waiting write, with one flush of the disk (group commit). A batch ends
 * at 2,000 writes or 25 ms. In a batch, a write of several statements has its own savepoint; a single statement undoes itself when
 * it fails. So a failed write does not affect others. All are answered after the commit; a failed commit rejects all writes of its
 * batch.
 */
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { checkParameters } from '../portable-sql.ts';
import { runProcedure } from '../procedure-run.ts';
import { releaseBytes } from '../release-bytes.ts';
import type { BoundStatement, Procedure, Row, Statement } from '../store.ts';
import { openSqliteConnection, translateCommitError } from './sqlite-connection.ts';
import {
  type ProcedureWrite,
  type QueuedWrite,
  toWireError,
  type WriterOutcome,
  type WriterReply,
  type WriterRequest,
  type WriterStatement,
} from './writer-protocol.ts';

export interface WriterThreadData {
  readonly path: string;
  readonly port: MessagePort;
}

/** Limits of a batch, so that answers are not late and other processes can write in between. */
const MAX_BATCH_WRITES = 2_000;
const MAX_BATCH_MS = 25;
/** The memory of values of at least this many bytes is freed at once. */
const LARGE_BYTES = 65_536;

const { path, port } = workerData as WriterThreadData;
const connection = openSqliteConnection(path, 'write');
// BEGIN, COMMIT and savepoints are prepared statements too: parsing them each time took longer than most transactions.
const BEGIN = { name: 'begin', text: 'BEGIN IMMEDIATE' };
const COMMIT = { name: 'commit', text: 'COMMIT' };
const SAVE = { name: 'save', text: 'SAVEPOINT write' };
const RELEASE = { name: 'release', text: 'RELEASE write' };
const statements = new Map<number, Statement<object>>();
const procedures = new Map<string, Procedure<unknown, unknown>>();
let waiting: QueuedWrite[] = [];
let isRunning = false;
let isClosing = false;

port.on('message', (request: WriterRequest) => {
  accept(request);
  if (!isRunning) void work();
});

function accept(request: WriterRequest): void {
  for (const [number, name, text] of request.definitions) statements.set(number, { name, text });
  for (const write of request.writes) waiting.push(write);
  if (request.close === true) isClosing = true;
}

function control(statement: Statement<object>): void {
  connection.run(statement, []);
}

function commit(): void {
  try {
    control(COMMIT);
  } catch (error) {
    throw translateCommitError(error);
  }
}

async function work(): Promise<void> {
  isRunning = true;
  for (;;) {
    acceptWhatArrived();
    if (waiting.length === 0) break;
    const batch = waiting.slice(0, MAX_BATCH_WRITES);
    await importProcedures(batch);
    const outcomes = await commitBatch(batch);
    waiting = waiting.slice(outcomes.length);
    batch.slice(0, outcomes.length).forEach(releaseLarge);
    reply(outcomes);
  }
  isRunning = false;
  if (!isClosing) return;
  connection.close();
  port.close();
}

function acceptWhatArrived(): void {
  for (let received = receiveMessageOnPort(port); received; received = receiveMessageOnPort(port))
    accept(received.message as WriterRequest);
}

/** Frees large values, which came to this thread as separate copies. */
function releaseLarge(write: QueuedWrite): void {
  if (!('statements' in write)) return;
  for (const value of write.statements.flatMap(([, parameters]) => parameters))
    if (value instanceof Uint8Array && value.byteLength >= LARGE_BYTES) releaseBytes(value);
}

/** Imports procedures before the transaction begins: an import waits for the disk, and the transaction would wait with it. */
async function importProcedures(batch: readonly QueuedWrite[]): Promise<void> {
  for (const write of batch) {
    if ('statements' in write || procedures.has(keyOf(write))) continue;
    const found = await importProcedure(write.module, write.name);
    procedures.set(keyOf(write), found);
  }
}

function keyOf(write: { readonly module: string; readonly name: string }): string {
  return `${write.module}#${write.name}`;
}

async function importProcedure(module: string, name: string): Promise<Procedure<unknown, unknown>> {
  try {
    const exported = ((await import(module)) as Record<string, unknown>)[name] as Procedure<unknown, unknown>;
    if (typeof exported?.run === 'function') return exported;
    return refuse(name, new Failure('internal', `Cannot call "${name}": ${module} does not export it`));
  } catch (cause) {
    return refuse(name, new Failure('internal', `Cannot call "${name}": ${module} cannot be loaded`, {}, { cause }));
  }
}

function refuse(name: string, error: Failure): Procedure<unknown, unknown> {
  return { name, module: '', isolation: 'serializable', run: () => Promise.reject(error) };
}

/** Returns the outcomes of the first writes of the batch, as many as one transaction took: at least one. */
async function commitBatch(batch: readonly QueuedWrite[]): Promise<WriterOutcome[]> {
  if (batch.length === 1) return [await commitAlone(batch[0]!)];
  const outcomes: WriterOutcome[] = [];
  try {
    control(BEGIN);
    const endsAtMs = realWorld.monotonicMs() + MAX_BATCH_MS;
    for (const write of batch) {
      outcomes.push(await runWrite(write));
      checkInTransaction();
      if (realWorld.monotonicMs() > endsAtMs) break;
    }
    commit();
    return outcomes;
  } catch (error) {
    if (connection.isInTransaction()) connection.execute('ROLLBACK');
    // If the transaction cannot begin, all writes fail: each of them would wait as long for the same error.
    const taken = outcomes.length === 0 ? batch : batch.slice(0, outcomes.length);
    return taken.map(({ id }) => ({ id, error: toWireError(error) }));
  }
}

/** Commits one write without a savepoint, for which SQLite would copy every page that the write changes. */
async function commitAlone(write: QueuedWrite): Promise<WriterOutcome> {
  try {
    control(BEGIN);
    const value = await runWhole(write);
    checkInTransaction();
    commit();
    return { id: write.id, value };
  } catch (error) {
    if (connection.isInTransaction()) connection.execute('ROLLBACK');
    return { id: write.id, error: toWireError(error) };
  }
}

async function runWrite(write: QueuedWrite): Promise<WriterOutcome> {
  // A failed statement undoes itself; only several need a savepoint.
  if ('statements' in write && write.statements.length === 1) return runAlone(write.id, write.statements[0]!);
  control(SAVE);
  try {
    const value = await runWhole(write);
    control(RELEASE);
    return { id: write.id, value };
  } catch (error) {
    if (connection.isInTransaction()) connection.execute('ROLLBACK TO write; RELEASE write');
    return { id: write.id, error: toWireError(error) };
  }
}

async function runWhole(write: QueuedWrite): Promise<unknown> {
  return 'statements' in write ? write.statements.map(runStatement) : await callProcedure(write);
}

function checkInTransaction(): void {
  if (!connection.isInTransaction())
    throw new Failure('unavailable', 'Cannot write: the database rolled the transaction back');
}

function runAlone(id: number, statement: WriterStatement): WriterOutcome {
  try {
    return { id, value: [runStatement(statement)] };
  } catch (error) {
    return { id, error: toWireError(error) };
  }
}

function runStatement([number, parameters]: WriterStatement): Row[] {
  return connection.run(statements.get(number)!, parameters);
}

async function callProcedure(write: ProcedureWrite): Promise<unknown> {
  const procedure = procedures.get(keyOf(write))!;
  const runStatements = (statements: readonly BoundStatement[]): Row[][] =>
    statements.map(({ statement, parameters }) => {
      checkParameters(statement.name, parameters);
      return connection.run(statement, parameters);
    });
  const limit = refuseToWait(write.name);
  try {
    return await runProcedure(procedure, write.input, runStatements, [limit.refusal]);
  } finally {
    clearImmediate(limit.timer);
  }
}

/**
 * Rejects in the next turn of the event loop. A procedure that awaits only its statements has ended by then; one that awaits
 * anything else would hold the transaction, and all other writers, for an unknown time.
 */
function refuseToWait(name: string): { readonly refusal: Promise<never>; readonly timer: NodeJS.Immediate } {
  const { promise: refusal, reject } = Promise.withResolvers<never>();
  const timer = setImmediate(() => {
    reject(new Failure('internal', `Cannot call "${name}": a procedure may await its statements only`));
  });
  return { refusal, timer };
}

function reply(outcomes: readonly WriterOutcome[]): void {
  try {
    port.postMessage({ outcomes } satisfies WriterReply);
  } catch {
    for (const outcome of outcomes) replyAlone(outcome);
  }
}

// One answer that cannot be cloned (with a function in it, say) must not make the others fail.
function replyAlone(outcome: WriterOutcome): void {
  try {
    port.postMessage({ outcomes: [outcome] } satisfies WriterReply);
  } catch (error) {
    const refused = new Failure('internal', 'Cannot answer: the result cannot be cloned', {}, { cause: error });
    port.postMessage({ outcomes: [{ id: outcome.id, error: toWireError(refused) }] } satisfies WriterReply);
  }
}
