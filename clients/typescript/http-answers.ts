/** Reads answers of the JSON API, and throws for answers that are not from Trivet, such as a page of a proxy. */
import type { Answer, Output } from './messages.ts';
import type { Taken } from './reporter.ts';

export function readAnswer(value: unknown): Answer {
  const { outputs, metadata } = readObject(value);
  if (!Array.isArray(outputs) || typeof readObject(metadata).modelVersion !== 'string') throw createError(value);
  return { outputs: outputs.map(readOutput), metadata: metadata as Answer['metadata'] };
}

function readOutput(value: unknown): Output {
  const output = readObject(value);
  for (const name of ['inputId', 'predictedTtftMillis', 'predictedTpotMillis'])
    if (typeof output[name] !== 'number') throw createError(value);
  return value as Output;
}

export function readTaken(value: unknown): Taken {
  const { accepted, refused } = readObject(value);
  // 64-bit counts are strings in the JSON of proto3.
  if (!isCount(accepted) || !isCount(refused)) throw createError(value);
  return { accepted: Number(accepted), refused: Number(refused) };
}

function isCount(value: unknown): boolean {
  return /^\d+$/.test(String(value));
}

function readObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw createError(value);
  return value as Readonly<Record<string, unknown>>;
}

function createError(value: unknown): Error {
  return new Error(`The answer does not come from Trivet: ${JSON.stringify(value)?.slice(0, 200)}`);
}
