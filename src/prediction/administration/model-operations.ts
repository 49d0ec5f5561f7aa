/** Declares the operations on models for the administration API and commands. */
import { z } from '@hono/zod-openapi';
import { describeOperation } from '../../operations/operation.ts';
import { pageLimit } from '../../operations/paging.ts';
import { PROTOCOLS } from '../evaluation/protocols.ts';
import { parseAge } from '../evaluation/stale-metrics.ts';
import { FORMATS } from '../formats/read-observations.ts';
import { STATISTICS } from '../model/calibration.ts';
import { TIME_UNITS, TRANSFORMS } from '../model/imported-trees.ts';
import { MAX_MODEL_NAME_BYTES } from '../schema/model-name.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { id, liveSchema, reading } from './accuracy-operations.ts';

const writing = { tag: 'Models', scope: 'models:write' } as const;
/** 16 MiB; one of our models with 64 pod types has about 4 MiB. */
const MAX_FILE_BYTES = 16_777_216;

export const versionSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    version: z.int(),
    parentVersion: z.int().optional(),
    createdAtMs: z.int(),
    checksum: z.string().openapi({ description: 'SHA-256 of the file' }),
    sizeBytes: z.int(),
    isPromoted: z.boolean().openapi({ description: 'It is served' }),
    lineage: z.record(z.string(), z.unknown()).openapi({ description: 'Where it came from and what it learned' }),
    live: z
      .object({ ttft: liveSchema.optional(), tpot: liveSchema.optional() })
      .openapi({ description: 'How well it predicted what was reported in the last 24 hours to all processes' }),
  })
  .openapi('ModelVersion');

export type VersionJson = z.infer<typeof versionSchema>;

export const listVersions = describeOperation({
  ...reading,
  name: 'listModelVersions',
  method: 'get',
  path: '/models',
  summary: 'List the versions of every model by name, the newest first',
  input: z.object({
    model: z.string().max(MAX_MODEL_NAME_BYTES).optional().openapi({ description: 'Only this model' }),
    served: z.enum(['true']).optional().openapi({ description: 'Only versions that are served' }),
    after: id.optional().openapi({ description: 'The `next` of the page before' }),
    limit: pageLimit(100, 500),
  }),
  output: z.object({ versions: z.array(versionSchema), next: z.string().nullable() }).openapi('ModelVersionsPage'),
});
export const showVersion = describeOperation({
  ...reading,
  name: 'showModelVersion',
  method: 'get',
  path: '/models/version',
  summary: 'Show a version',
  input: z.object({
    id: id.openapi({ description: 'name@version; a name alone is the served version, or else the newest' }),
  }),
  output: versionSchema,
});
export const exportVersion = describeOperation({
  ...reading,
  name: 'exportModelVersion',
  method: 'get',
  path: '/models/file',
  summary: 'The file of a version, as it can be imported',
  input: z.object({ id }),
  output: z.instanceof(Uint8Array),
  givesFile: true,
});
export const promote = describeOperation({
  ...writing,
  name: 'promoteModelVersion',
  method: 'post',
  path: '/models/promote',
  summary: 'Serve a version from now on',
  input: z.object({ id }),
  output: z
    .object({ id: z.string(), changed: z.boolean().openapi({ description: 'false: it was served already' }) })
    .openapi('Promotion'),
});
export const rollBack = describeOperation({
  ...writing,
  name: 'rollBackModel',
  method: 'post',
  path: '/models/rollback',
  summary: 'Serve again the version that was served before the present one',
  input: z.object({
    model: z.string().min(1).max(MAX_MODEL_NAME_BYTES),
    expectedVersion: z
      .int()
      .min(1)
      .optional()
      .openapi({ description: 'Refused with 409 when it would lead to another version' }),
  }),
  output: z
    .object({
      id: z.string().openapi({ description: 'The version that is served again' }),
      from: z.string().openapi({ description: 'The version that was served until then' }),
    })
    .openapi('Rollback'),
});
export const importVersion = describeOperation({
  ...writing,
  name: 'importModelVersion',
  method: 'post',
  path: '/models/import',
  summary: 'Keep a version from a file: an exported version, XGBoost JSON or LightGBM text',
  input: z.object({
    model: z
      .string()
      .max(MAX_MODEL_NAME_BYTES)
      .optional()
      .openapi({ description: 'The name to keep it under; that of an exported model when absent' }),
    promote: z.enum(['true', 'false']).default('true').openapi({ description: 'Serve it from now on' }),
    source: z.string().max(500).optional().openapi({ description: 'Where the file came from, for the lineage' }),
    target: z.enum(PREDICTION_TARGETS).optional().openapi({ description: 'What the trees of another library predict' }),
    features: z.string().max(10_000).optional().openapi({ description: 'name=field each, with commas' }),
    transform: z.enum(TRANSFORMS).optional(),
    unit: z.enum(TIME_UNITS).optional(),
    podType: z.string().max(256).optional(),
    statistic: z.enum(STATISTICS).optional(),
  }),
  output: z.object({ id: z.string(), promoted: z.boolean() }).openapi('ModelImport'),
  takesFileOf: MAX_FILE_BYTES,
});

const accuracySchema = z.object({
  rows: z.int(),
  mape: z.number().nullable(),
  mdape: z.number().nullable(),
  wape: z.number().nullable(),
  bias: z.number().nullable(),
  p50_coverage: z.number().nullable(),
  p90_coverage: z.number().nullable(),
  p90_pinball: z.number().nullable(),
});

export const evaluateObservations = describeOperation({
  ...reading,
  name: 'evaluateObservations',
  method: 'post',
  path: '/models/evaluate',
  summary: 'Measure how well the observations of a file can be predicted, by models that have not seen them',
  input: z.object({
    protocol: z.enum(PROTOCOLS).default('random'),
    format: z.enum(FORMATS).optional().openapi({ description: 'Detected when absent' }),
    model: z.string().max(MAX_MODEL_NAME_BYTES).optional().openapi({ description: 'Only rows of this target model' }),
    kvCapacityTokens: z.coerce
      .number()
      .positive()
      .optional()
      .openapi({ description: 'For logs of requests and benchmarks: tokens that the KV cache of one server holds' }),
    server: z.string().max(256).optional().openapi({ description: 'For benchmarks: the server that was measured' }),
    source: z
      .string()
      .min(1)
      .max(4096)
      .default('file')
      .openapi({ description: 'The name of the file: that of the run of a benchmark too, with #1, #2 for several' }),
    holdOut: z
      .string()
      .max(10_000)
      .optional()
      .openapi({ description: 'Runs that leave-run-out tests, with commas; each in turn when absent' }),
    age: z
      .string()
      .refine((text) => parseAge(text) !== undefined, 'must be a whole number with ms, s or rows after it')
      .optional()
      .openapi({ description: 'How old metrics are with stale-metrics, as 500ms, 2s or 10rows' }),
  }),
  output: z
    .object({
      protocol: z.enum(PROTOCOLS),
      ttft: accuracySchema,
      tpot: accuracySchema,
      tpot_by_output_tokens: z.record(z.string(), accuracySchema).optional(),
      left_out: z
        .array(
          z.object({
            rows: z.int().openapi({ description: 'How many' }),
            reason: z.string().openapi({ description: 'Why, naming the field' }),
            first_at: z.string().openapi({ description: 'The line of the first of them' }),
          }),
        )
        .optional()
        .openapi({
          description:
            'Rows that could not be used, by the 100 most frequent reasons, and those of other reasons together; absent without such rows',
        }),
      copies: z.int().optional().openapi({
        description: 'Rows that say the same as another one, whose errors are too small; absent without such rows',
      }),
      ignored: z
        .array(
          z.object({
            name: z.string().openapi({ description: 'Name of the field' }),
            rows: z.int().openapi({ description: 'How many rows have it' }),
          }),
        )
        .optional()
        .openapi({
          description:
            'Fields that are not used: the 100 most frequent, and the others together; absent without such fields',
        }),
      remarks: z
        .array(
          z.string().openapi({
            example: 'Are the times in seconds? They must be in milliseconds: a first token typically takes 0.1 ms',
          }),
        )
        .optional()
        .openapi({
          description: 'What looks wrong in the rows, such as times in another unit; absent where nothing does',
        }),
    })
    .openapi('Evaluation', { description: 'All numbers but rows in percent' }),
  takesFileOf: MAX_FILE_BYTES,
});
