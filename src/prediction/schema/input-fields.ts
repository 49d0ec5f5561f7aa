/**
 * Lists the input fields with name, range and unit. A new field is added here: decoders, SQL, API, drafts of reports, the OpenAPI
 * document and the reference loop over this list. A new number also needs a line in the proto file, and a migration that adds its
 * column to `samples`; docs/decisions/0012-input-fields.md has all steps. A number that is not sent is 0, as in proto3. If waiting,
 * running, KV cache use and tokens in flight are all 0, they are filled from the last scrape of the server
 * (`scraper/scraped-loads.ts`).
 */
interface FieldDescription {
  /** The name in the proto file, in tables and in files; code and JSON have it in camel case. */
  readonly name: string;
  /** The field number in PredictInput. */
  readonly number: number;
  readonly kind: 'int32' | 'double' | 'string';
  /** Numbers of `request` and `load` are metrics: models learn from them. */
  readonly of: 'call' | 'server' | 'request' | 'load';
  readonly meaning: string;
  /** `share` is expected between 0 and 1; larger values are accepted as they are. */
  readonly unit: 'any' | 'text' | 'tokens' | 'count' | 'share';
}

export const INPUT_FIELDS = [
  {
    name: 'input_id',
    number: 1,
    kind: 'int32',
    of: 'call',
    meaning: 'chosen by the caller, comes back in the output',
    unit: 'any',
  },
  {
    name: 'pod_type',
    number: 2,
    kind: 'string',
    of: 'server',
    meaning: 'what the server does: empty or `aggregate`, `prefill`, `decode`, or a name of your own',
    unit: 'text',
  },
  {
    name: 'input_token_length',
    number: 3,
    kind: 'int32',
    of: 'request',
    meaning: 'length of the prompt',
    unit: 'tokens',
  },
  {
    name: 'prefix_cache_score',
    number: 4,
    kind: 'double',
    of: 'request',
    meaning: "share of the prompt that the server's prefix cache holds already",
    unit: 'share',
  },
  {
    name: 'num_request_waiting',
    number: 5,
    kind: 'int32',
    of: 'load',
    meaning: "requests in the server's queue",
    unit: 'count',
  },
  {
    name: 'num_request_running',
    number: 6,
    kind: 'int32',
    of: 'load',
    meaning: "requests in the server's batch",
    unit: 'count',
  },
  {
    name: 'kv_cache_usage',
    number: 7,
    kind: 'double',
    of: 'load',
    meaning: 'share of the KV cache in use',
    unit: 'share',
  },
  {
    name: 'inflight_tokens',
    number: 8,
    kind: 'int32',
    of: 'load',
    meaning: 'tokens of requests sent to the server and not finished, prompt and output',
    unit: 'tokens',
  },
  {
    name: 'hbm_utilization',
    number: 9,
    kind: 'double',
    of: 'load',
    meaning: "share of the accelerator's memory in use",
    unit: 'share',
  },
  {
    name: 'ai_core_utilization',
    number: 10,
    kind: 'double',
    of: 'load',
    meaning: 'share of time in which the compute cores are busy',
    unit: 'share',
  },
  {
    name: 'bandwidth_utilization',
    number: 11,
    kind: 'double',
    of: 'load',
    meaning: 'share of the memory bandwidth in use',
    unit: 'share',
  },
  {
    name: 'server_ip',
    number: 12,
    kind: 'string',
    of: 'server',
    meaning: 'address of the server, comes back in the output',
    unit: 'text',
  },
] as const satisfies readonly FieldDescription[];

export type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

export type InputField = (typeof INPUT_FIELDS)[number];
type MetricField = Extract<InputField, { readonly of: 'request' | 'load' }>;
export type MetricName = MetricField['name'];
export type MetricColumn = CamelCase<MetricName>;

/** A field that models learn from. */
export interface Metric extends FieldDescription {
  readonly name: MetricName;
  /** The name in camel case. */
  readonly column: MetricColumn;
  readonly kind: 'int32' | 'double';
}

/** The metrics in the order of their field numbers. */
export const METRICS: readonly Metric[] = INPUT_FIELDS.filter(isMetric).map((field) => ({
  ...field,
  column: toCamelCase(field.name) as MetricColumn,
}));

function isMetric(field: InputField): field is MetricField {
  return field.of === 'request' || field.of === 'load';
}

export function toCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns one value for each metric, by its column. */
export function fillMetrics<T>(read: (metric: Metric) => T): Record<MetricColumn, T> {
  return Object.fromEntries(METRICS.map((metric) => [metric.column, read(metric)])) as Record<MetricColumn, T>;
}

/** The largest int32, the type in proto/. */
export const MAX_COUNT = 2_147_483_647;

/** Returns false for negative numbers, infinities and NaN. Predict omits an input with one; a report with one is refused. */
export function isUsableNumber(value: number): boolean {
  return value >= 0 && value <= Number.MAX_VALUE;
}

export interface BrokenBound {
  readonly name: MetricName;
  readonly value: number;
  readonly bound: 'not negative and finite' | 'maximum';
}

/** Returns the first metric outside the bounds of its field. Fields of kind int32 accept fractions too, such as averages. */
export function findBrokenBound(input: Readonly<Record<MetricColumn, number>>): BrokenBound | undefined {
  for (const { name, column, kind } of METRICS) {
    const value = input[column];
    if (!isUsableNumber(value)) return { name, value, bound: 'not negative and finite' };
    if (kind === 'int32' && value > MAX_COUNT) return { name, value, bound: 'maximum' };
  }
  return undefined;
}
