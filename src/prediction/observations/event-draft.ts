/** Checks a reported event: missing fields, times in the future, unusable numbers. */
import { findTextFault } from '../../database/storable-text.ts';
import { Failure } from '../../errors.ts';
import { findTpot } from '../schema/answer-certainty.ts';
import { type BrokenBound, fillMetrics, findBrokenBound, MAX_COUNT } from '../schema/input-fields.ts';
import { findTimeFault } from '../schema/milliseconds.ts';
import type { ObservationEvent, ObservedInput } from '../schema/observation-event.ts';

/** A reported event as it was read, before it is checked. */
export interface EventDraft {
  kind: ObservationEvent['kind'];
  requestId: string;
  targetModel: string;
  input: InputDraft | undefined;
  at: TimestampDraft | undefined;
  ttftMs: number | undefined;
  tpotMs: number | undefined;
  outputTokens: number;
}

export type InputDraft = { -readonly [Name in keyof ObservedInput]: ObservedInput[Name] };

export interface TimestampDraft {
  seconds: number;
  nanos: number;
}

export function createDraft(kind: EventDraft['kind']): EventDraft {
  return {
    kind,
    requestId: '',
    targetModel: '',
    input: undefined,
    at: undefined,
    ttftMs: undefined,
    tpotMs: undefined,
    outputTokens: 0,
  };
}

const EMPTY_INPUT: InputDraft = { podType: '', ...fillMetrics(() => 0), serverIp: '' };

export function createInputDraft(): InputDraft {
  return { ...EMPTY_INPUT };
}

/** The longest text in bytes, since samples and the state of servers keep it. */
export const MAX_NAME_BYTES = 256;
/** How far the clock of a caller may be ahead. */
const MAX_AHEAD_MS = 86_400_000;

/** Returns the event if its values are plausible, else throws an `invalid` failure that names the field. An absent time is `nowMs`. */
export function checkDraft(draft: EventDraft, nowMs: number): ObservationEvent {
  const { kind, requestId } = draft;
  const atMs = checkTime(draft.at, nowMs);
  switch (kind) {
    case 'dispatched':
      return { kind, requestId: checkName('request_id', requestId), ...checkCandidate(draft), atMs };
    case 'first_token':
      return {
        kind,
        requestId: checkName('request_id', requestId),
        ttftMs: checkDuration('ttft_millis', draft.ttftMs),
        atMs,
      };
    case 'finished':
      return { kind, requestId: checkName('request_id', requestId), ...checkOutput(draft), atMs };
    case 'observation':
      return { kind, ...checkObservation(draft), atMs };
  }
}

const ONE_TOKEN = 'must be given for one output token, which has no tpot_millis';

function checkObservation(draft: EventDraft) {
  const output = checkOutput(draft);
  if (draft.ttftMs === undefined && output.tpotMs === undefined)
    throw refuse('ttft_millis', draft.tpotMs === undefined ? 'or tpot_millis must be given' : ONE_TOKEN);
  const ttftMs = draft.ttftMs === undefined ? undefined : checkDuration('ttft_millis', draft.ttftMs);
  const requestId = draft.requestId === '' ? '' : checkName('request_id', draft.requestId);
  return { requestId, ...checkCandidate(draft), ttftMs, ...output };
}

function checkCandidate({ targetModel, input }: EventDraft): { targetModel: string; input: ObservedInput } {
  checkName('target_model', targetModel);
  if (input === undefined) throw refuse('input', 'must be given');
  checkText('input.pod_type', input.podType);
  checkText('input.server_ip', input.serverIp);
  const broken = findBrokenBound(input);
  if (broken !== undefined)
    throw refuse(`input.${broken.name}`, `must be ${RANGE_OF[broken.bound]}, got ${broken.value}`);
  return { targetModel, input };
}

const RANGE_OF: Readonly<Record<BrokenBound['bound'], string>> = {
  'not negative and finite': 'a number from 0 on',
  maximum: `at most ${MAX_COUNT}`,
};

function checkOutput({ tpotMs, outputTokens }: EventDraft): { tpotMs: number | undefined; outputTokens: number } {
  if (outputTokens < 0) throw refuse('output_tokens', `must not be negative, got ${outputTokens}`);
  const known = findTpot(tpotMs, outputTokens);
  return { tpotMs: known === undefined ? undefined : checkDuration('tpot_millis', known), outputTokens };
}

function checkDuration(name: string, value: number | undefined): number {
  if (value === undefined) throw refuse(name, 'must be given');
  const fault = findTimeFault(value);
  if (fault !== undefined) throw refuse(name, `${fault}, got ${value}`);
  return value;
}

function checkName(name: string, value: string): string {
  if (value === '') throw refuse(name, 'must not be empty');
  checkText(name, value);
  return value;
}

/** Checked here because otherwise one bad text would make the store refuse the whole batch. */
function checkText(name: string, value: string): void {
  const length = Buffer.byteLength(value, 'utf8');
  if (length > MAX_NAME_BYTES) throw refuse(name, `must have at most ${MAX_NAME_BYTES} bytes, got ${length}`);
  const fault = findTextFault(value);
  if (fault !== undefined) throw refuse(name, fault);
}

/** A clock that is a little ahead is common, one that is a day ahead is wrong. */
function checkTime(at: TimestampDraft | undefined, nowMs: number): number {
  if (at === undefined) return nowMs;
  if (at.nanos < 0 || at.nanos > 999_999_999) throw refuse('at', `must have 0 to 999,999,999 nanos, got ${at.nanos}`);
  const atMs = toMilliseconds(at);
  if (!(atMs >= 0) || isTooFarAhead(atMs, nowMs))
    throw refuse('at', 'must not be before 1970 or more than a day ahead');
  return atMs;
}

function toMilliseconds({ seconds, nanos }: TimestampDraft): number {
  return seconds * 1000 + Math.floor(nanos / 1_000_000);
}

/** Returns how far a whole observation is dated ahead; 0 if it is not, or too far. */
export function readAheadMs({ kind, at }: EventDraft, nowMs: number): number {
  if (kind !== 'observation' || at === undefined) return 0;
  return measureAhead(toMilliseconds(at), nowMs);
}

/** Returns 0 for a time that is too far ahead: it is wrong, and says nothing about the clock of a batch. */
export function measureAhead(atMs: number, nowMs: number): number {
  return atMs > nowMs && !isTooFarAhead(atMs, nowMs) ? atMs - nowMs : 0;
}

export function isTooFarAhead(atMs: number, nowMs: number): boolean {
  return atMs > nowMs + MAX_AHEAD_MS;
}

function refuse(field: string, reason: string): Failure {
  return new Failure('invalid', `${field} ${reason}`, { field });
}
