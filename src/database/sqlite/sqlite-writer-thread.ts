/**
 * The one writer of a process. Everything that waits when a transaction begins goes into it: each unit in its own
 * savepoint, one commit and so one flush of the disk for all, and only then the answers. A unit that fails takes
 * nothing else with it; a commit that fails rejects all of its writes.
 */
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { checkParameters } from '../portable-sql.ts';
import { runProcedure } from '../procedure-run.ts';
import type { Procedure, Row, SqlValue, Statement } from '../store.ts';
import { openSqliteConnection } from './sqlite-connection.ts';
import {
  type ProcedureUnit,
  toWireError,
  type WriterOutcome,
  type WriterReply,
  type WriterRequest,
  type WriterStep,
  type WriterUnit,
} from './writer-protocol.ts';

export interface WriterThreadData {
  readonly path: string;
  readonly port: MessagePort;
}

/** A batch ends here, so that answers are not late and other processes get their turn. */
const MAX_BATCH_UNITS = 2_000;
const MAX_BATCH_MS = 25;

const { path, port } = workerData as WriterThreadData;
const connection = openSqliteConnection(path, 'write');
// Prepared like all others: parsing them each time took longer than most transactions.
const BEGIN = { name: 'begin', text: 'BEGIN IMMEDIATE' };
const COMMIT = { name: 'commit', text: 'COMMIT' };
const SAVE = { name: 'save', text: 'SAVEPOINT unit' };
const RELEASE = { name: 'release', text: 'RELEASE unit' };
const statements = new Map<number, Statement<object>>();
const procedures = new Map<string, Procedure<unknown, unknown>>();
let waiting: WriterUnit[] = [];
let isRunning = false;
let isClosing = false;

port.on('message', (request: WriterRequest) => {
  accept(request);
  if (!isRunning) void work();
});

function accept(request: WriterRequest): void {
  for (const [number, name, text] of request.definitions) statements.set(number, { name, text });
  for (const unit of request.units) waiting.push(unit);
  if (request.close === true) isClosing = true;
}

function control(statement: Statement<object>): void {
  connection.run(statement, []);
}

async function work(): Promise<void> {
  isRunning = true;
  for (;;) {
    acceptWhatArrived();
    if (waiting.length === 0) break;
    const batch = waiting.slice(0, MAX_BATCH_UNITS);
    await importProcedures(batch);
    const outcomes = await commitBatch(batch);
    waiting = waiting.slice(outcomes.length);
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

/** Before the transaction begins: an import waits for the disk, and the transaction would wait with it. */
async function importProcedures(batch: readonly WriterUnit[]): Promise<void> {
  for (const unit of batch) {
    if ('steps' in unit || procedures.has(keyOf(unit))) continue;
    const found = await importProcedure(unit.module, unit.name);
    procedures.set(keyOf(unit), found);
  }
}

function keyOf(unit: { readonly module: string; readonly name: string }): string {
  return `${unit.module}#${unit.name}`;
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

/** The outcomes of the first units of the batch, as many as one transaction took; at least one. */
async function commitBatch(batch: readonly WriterUnit[]): Promise<WriterOutcome[]> {
  const outcomes: WriterOutcome[] = [];
  try {
    control(BEGIN);
    const endsAtMs = realWorld.monotonicMs() + MAX_BATCH_MS;
    for (const unit of batch) {
      outcomes.push(await runUnit(unit));
      if (!connection.isInTransaction())
        throw new Failure('unavailable', 'Cannot write: the database gave the transaction up');
      if (realWorld.monotonicMs() > endsAtMs) break;
    }
    control(COMMIT);
    return outcomes;
  } catch (error) {
    if (connection.isInTransaction()) connection.execute('ROLLBACK');
    // Before the first unit everyone fails: the next ones would only wait as long again, one after the other.
    const taken = outcomes.length === 0 ? batch : batch.slice(0, outcomes.length);
    return taken.map(({ id }) => ({ id, error: toWireError(error) }));
  }
}

async function runUnit(unit: WriterUnit): Promise<WriterOutcome> {
  // A statement that fails undoes itself; only more than one needs a savepoint.
  if ('steps' in unit && unit.steps.length === 1) return runAlone(unit.id, unit.steps[0]!);
  control(SAVE);
  try {
    const value = 'steps' in unit ? unit.steps.map(runStep) : await callProcedure(unit);
    control(RELEASE);
    return { id: unit.id, value };
  } catch (error) {
    if (connection.isInTransaction()) connection.execute('ROLLBACK TO unit; RELEASE unit');
    return { id: unit.id, error: toWireError(error) };
  }
}

function runAlone(id: number, step: WriterStep): WriterOutcome {
  try {
    return { id, value: [runStep(step)] };
  } catch (error) {
    return { id, error: toWireError(error) };
  }
}

function runStep([number, parameters]: WriterStep): Row[] {
  return connection.run(statements.get(number)!, parameters);
}

async function callProcedure(unit: ProcedureUnit): Promise<unknown> {
  const procedure = procedures.get(keyOf(unit))!;
  const runStatement = (statement: Statement<object>, parameters: readonly SqlValue[]): Row[] => {
    checkParameters(statement.name, parameters);
    return connection.run(statement, parameters);
  };
  const limit = refuseToWait(unit.name);
  try {
    return await runProcedure(procedure, unit.input, runStatement, [limit.refusal]);
  } finally {
    clearImmediate(limit.timer);
  }
}

/**
 * Rejects in the next turn of the event loop. A procedure that has ended by then awaited statements only; a procedure that
 * is not would hold the transaction, and every other writer with it, for as long as it likes.
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

// One answer that cannot be cloned (a function in it, say) must not take the others with it.
function replyAlone(outcome: WriterOutcome): void {
  try {
    port.postMessage({ outcomes: [outcome] } satisfies WriterReply);
  } catch (error) {
    const refused = new Failure('internal', 'Cannot answer: the result cannot be cloned', {}, { cause: error });
    port.postMessage({ outcomes: [{ id: outcome.id, error: toWireError(refused) }] } satisfies WriterReply);
  }
}
