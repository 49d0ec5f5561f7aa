/** Checks the header of a model file, which may come from anyone: its checksum detects damage, and is no signature. */
import { z } from 'zod';
import { LEVELS, STATISTICS } from './calibration.ts';
import { FEATURE_NAMES, isInputFeature } from './features.ts';
import { TIME_UNITS, TRANSFORMS } from './imported-trees.ts';
import type { LearningParameters } from './model.ts';

/** Each pod type with a model of its own takes some megabytes while it is served. */
export const MAX_POD_TYPE_MODELS = 64;
/** Trained calibrations have at most 8 buckets. Each answer searches them, so a file must not have many. */
const MAX_BUCKETS = 64;
/**
 * The largest offset, a logarithm. Those of pod type, server name and server add up to less, since clamped times differ by a
 * factor of at most e^25; e^200 is finite.
 */
const MAX_LOG = 200;

const count = z.int().min(0);
const finite = z.number();
const notNegative = finite.min(0);

/** Offsets by the name of their owner. Checked in one loop: a schema that checks each of many thousand servers would delay other calls. */
const levels = z.custom<Readonly<Record<string, number>>>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((level) => typeof level === 'number' && Math.abs(level) <= MAX_LOG),
  `must be an object of numbers from -${MAX_LOG} to ${MAX_LOG}`,
);

/**
 * Offsets (`server-offsets.ts`), which the file calls levels: logarithms of factors. `kinds` are those by server name, absent in
 * models of an earlier program.
 */
const offsets = z.object({ servers: levels, kinds: levels.optional(), podTypes: levels });

const calibration = z
  .object({
    edges: z.array(notNegative).max(MAX_BUCKETS - 1),
    quantiles: z.array(finite),
    logMeans: z.array(finite),
    rows: count,
  })
  .refine(({ edges }) => isRising(edges), 'edges must be in rising order')
  .refine(
    ({ edges, quantiles, logMeans }) =>
      quantiles.length === (edges.length + 1) * LEVELS.length && logMeans.length === edges.length + 1,
    `must have ${LEVELS.length} quantiles and one mean for each bucket`,
  )
  .refine(
    ({ logMeans, quantiles }) =>
      logMeans.every((_, bucket) => isRising(quantiles.slice(bucket * LEVELS.length, (bucket + 1) * LEVELS.length))),
    'quantiles of a bucket must be in rising order',
  );

function isRising(numbers: readonly number[]): boolean {
  return numbers.every((number, i) => i === 0 || number >= numbers[i - 1]!);
}

const imported = z.object({
  library: z.string(),
  sources: z
    .array(
      z.object({
        name: z.string(),
        from: z.union([
          finite,
          z.string().refine((name): boolean => isInputFeature(name), 'must be a feature that this program computes'),
        ]),
      }),
    )
    .readonly(),
  transform: z.enum(TRANSFORMS),
  unit: z.enum(TIME_UNITS),
  bytes: count,
});

const target = z.object({
  rows: count,
  /** Absent where every server has factor 1. */
  levels: offsets.optional(),
  physics: z.object({ coefficients: z.record(z.string(), notNegative), floorMs: finite.positive() }),
  hasForest: z.boolean(),
  /** Absent in models of an earlier program. */
  treeBaseMs: notNegative.optional(),
  forestShare: notNegative.max(1),
  calibration,
  // It is only shown, so an invalid one does not make the model invalid.
  validation: z.object({ rows: count, mape: finite, mdape: finite }).nullable().catch(null),
  imported: imported.optional(),
});

const slot = z.object({
  /** Null for the pooled model. */
  podType: z.string().nullable(),
  targets: z.object({ ttft: target.optional(), tpot: target.optional() }),
  /**
   * The offsets that the trees of the slot take as inputs, for each target that itself has different ones (an import replaced
   * it). Absent in models of an earlier program.
   */
  treeLevels: z.object({ ttft: offsets.optional(), tpot: offsets.optional() }).optional(),
  forestBytes: count,
});

const header = z.object({
  id: z.string().min(1),
  statistic: z.enum(STATISTICS),
  parameters: z
    .custom<LearningParameters>((value) => typeof value === 'object' && value !== null && !Array.isArray(value))
    .optional(),
  features: z.array(z.string()).readonly(),
  slots: z
    .array(slot)
    .min(1)
    .max(MAX_POD_TYPE_MODELS + 1)
    .refine(([pooled, ...others]) => pooled?.podType === null && others.every(({ podType }) => podType !== null), {
      message: 'the first must be of all pod types, and the others of one each',
    })
    .refine((slots) => new Set(slots.map(({ podType }) => podType)).size === slots.length, {
      message: 'no two may be of the same pod type',
    }),
});

export type ModelHeader = z.infer<typeof header>;
export type SlotHeader = ModelHeader['slots'][number];
export type OffsetsHeader = z.infer<typeof offsets>;
export type TargetHeader = NonNullable<SlotHeader['targets']['ttft']>;

function isComputed(feature: string, position: number, features: readonly string[]): boolean {
  return FEATURE_NAMES.some((name) => name === feature) && features.indexOf(feature) === position;
}

/** Throws a RangeError that names the first invalid field. */
export function checkHeader(value: unknown): ModelHeader {
  const parsed = header.safeParse(value);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    throw new RangeError(`its header is not well formed: ${[...path, ''].join('.').slice(0, 200)} ${message}`);
  }
  const hasForests = parsed.data.slots.some((slot) => slot.forestBytes > 0);
  if (hasForests && !parsed.data.features.every(isComputed))
    throw new RangeError('it was trained on features that this program does not compute, train it again');
  return parsed.data;
}
