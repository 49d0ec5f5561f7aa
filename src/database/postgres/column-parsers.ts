/** Converts PostgreSQL's text values into the types that both engines return. */

export type Parser = (value: string) => unknown;

const PARSERS: Readonly<Record<number, Parser>> = {
  16: (value) => (value === 't' ? 1 : 0),
  17: parseBytes,
  20: parseInteger,
  21: Number,
  23: Number,
  700: Number,
  701: Number,
  // numeric: the type of SUM and AVG of integers.
  1700: Number,
};

/** Returns the function that converts the text of a column of this type into a value of store.ts. */
export function findParser(oid: number): Parser {
  return PARSERS[oid] ?? ((value) => value);
}

function parseInteger(value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new RangeError(`Value is too large to be represented as a JavaScript number: ${value}`);
}

function parseBytes(value: string): Uint8Array {
  return new Uint8Array(Buffer.from(value.slice(2), 'hex'));
}
