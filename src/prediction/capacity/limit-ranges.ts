/** Defines the allowed ranges of the numbers in a request for a capacity. */

export interface NumberRange {
  readonly minimum: number;
  readonly maximum: number;
}

export const LIMIT_RANGES = {
  /** A limit of TTFT or TPOT: from the resolution of observed times to a day. */
  milliseconds: { minimum: 0.001, maximum: 86_400_000 },
  quantile: { minimum: 0.5, maximum: 0.99 },
  /** The mean length of a prompt. */
  promptTokens: { minimum: 1, maximum: 10_000_000 },
  /** The mean length of an answer. */
  outputTokens: { minimum: 1, maximum: 1_000_000 },
} as const satisfies Readonly<Record<string, NumberRange>>;

export function describeRange({ minimum, maximum }: NumberRange): string {
  return `a number from ${minimum} to ${maximum}`;
}

const DECIMAL = /^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/;

/** Returns undefined unless the text is a decimal number in the range. */
export function readNumberIn({ minimum, maximum }: NumberRange, text: string): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return value >= minimum && value <= maximum ? value : undefined;
}
