/** Parses the value of an option that must be a whole number. */
import { InvalidArgumentError } from 'commander';

export function wholeNumber(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`it must be a whole number from ${minimum} to ${maximum}.`);
  };
}
