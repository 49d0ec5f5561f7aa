/** Declares the messages between a process and its SQLite writer thread. */
import { Failure, type FailureCode, type FailureDetails } from '../../errors.ts';
import type { SqlValue } from '../store.ts';

/** Messages between a process and its SQLite writer thread. A statement's text is sent once, then only its number. */

export type WriterStatement = readonly [statement: number, parameters: readonly SqlValue[]];

export interface StatementsWrite {
  readonly id: number;
  readonly statements: readonly WriterStatement[];
}

export interface ProcedureWrite {
  readonly id: number;
  readonly module: string;
  readonly name: string;
  readonly input: unknown;
}

export type QueuedWrite = StatementsWrite | ProcedureWrite;

export interface WriterRequest {
  readonly definitions: readonly (readonly [number: number, name: string, text: string])[];
  readonly writes: readonly QueuedWrite[];
  /** Closes the database after all earlier requests. */
  readonly close?: true;
}

export type WriterOutcome =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: WireError };

export interface WriterReply {
  readonly outcomes: readonly WriterOutcome[];
}

/** An error as it crosses the threads: a Failure stays one. */
export interface WireError {
  readonly failure: FailureCode | undefined;
  readonly details: FailureDetails;
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly cause: WireError | undefined;
}

export function toWireError(error: unknown): WireError {
  const { name, message, stack, cause } = error instanceof Error ? error : new Error(String(error));
  const isRefusal = error instanceof Failure;
  return {
    failure: isRefusal ? error.code : undefined,
    details: isRefusal ? error.details : {},
    name,
    message,
    stack,
    cause: cause === undefined ? undefined : toWireError(cause),
  };
}

export function fromWireError(wire: WireError): Error {
  const options = wire.cause === undefined ? {} : { cause: fromWireError(wire.cause) };
  const error =
    wire.failure === undefined
      ? new Error(wire.message, options)
      : new Failure(wire.failure, wire.message, wire.details, options);
  error.name = wire.name;
  if (wire.stack !== undefined) error.stack = wire.stack;
  return error;
}
