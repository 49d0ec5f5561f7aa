/** Parses the value of an option that must be a number above 0, and finite. */
import { InvalidArgumentError } from 'commander';

export function parsePositive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('it must be a finite number above 0.');
}
