/** What can be asked about models, and changed, over the administration API and by command. */
import { z } from '@hono/zod-openapi';
import { describeOperation } from '../../operations/operation.ts';
import { pageLimit } from '../../operations/paging.ts';
import { PROTOCOLS } from '../evaluation/protocols.ts';
import { parseAge } from '../evaluation/stale-metrics.ts';
import { FORMATS } from '../formats/read-observations.ts';
import { STATISTICS } from '../model/calibration.ts';
import { TIME_UNITS, TRANSFORMS } from '../model/imported-trees.ts';
import { TARGETS } from '../schema/observation-table.ts';

const reading = { tag: 'Models', scope: 'models:read' } as const;
const writing = { tag: 'Models', scope: 'models:write' } as const;
const id = z.string().min(1).max(250).openapi({ description: 'name@version' });

/** 16 MiB: a model of ours with 64 types of pods has about four. */
const MAX_FILE_BYTES = 16_777_216;

const percent = z.number();
const liveScores = {
  rows: z.int().openapi({ description: 'Times that were reported' }),
  mape: percent.openapi({ description: 'Mean error, relative to the observed time' }),
  mdape: percent.openapi({ description: 'Median error, interpolated; 100 stands for larger ones too' }),
  wape: percent.openapi({ description: 'Sum of the errors over the sum of the observed times' }),
  bias: percent.openapi({ description: 'Above 0 when predictions are too long' }),
  p50Coverage: percent.openapi({ description: 'Times that were not above the predicted median' }),
  p90Coverage: percent.openapi({ description: 'Times that were not above the predicted p90' }),
};
const liveSchema = z.object(liveScores).openapi('LiveScores', { description: 'All numbers but rows in percent' });

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
    model: z.string().max(200).optional().openapi({ description: 'Only this model' }),
    served: z.enum(['true']).optional().openapi({ description: 'Only versions that are served' }),
    after: id.optional().openapi({ description: 'Where the page before ended: its `next`' }),
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
const comparedScores = {
  mape: percent.openapi({ description: 'Mean error, relative to the observed time' }),
  bias: percent.openapi({ description: 'Above 0 when predictions are too long' }),
  p90Coverage: percent.openapi({ description: 'Times that were not above the predicted p90' }),
};

export const compareTwoVersions = describeOperation({
  ...reading,
  name: 'compareModelVersions',
  method: 'get',
  path: '/models/compare',
  summary: 'Let two versions predict the same newest samples, each without what servers have shown since',
  input: z.object({
    id: id.openapi({ description: 'name@version' }),
    with: z.coerce
      .number()
      .int()
      .min(1)
      .optional()
      .openapi({ description: 'Another version of the same model; the served one when absent' }),
  }),
  output: z
    .object({
      id: z.string().openapi({ description: 'The version that was named' }),
      otherId: z.string().openapi({ description: 'The version beside it' }),
      rows: z.int().openapi({ description: 'Samples that both predicted' }),
      fromMs: z.number().nullable().openapi({ description: 'When the oldest of them was asked' }),
      toMs: z.number().nullable().openapi({ description: 'When the newest of them was asked' }),
      learnedByVersion: z
        .int()
        .openapi({ description: 'Of these, the ones that the version may have learned from, which flatters it' }),
      learnedByOther: z.int().openapi({ description: 'The same of the other version' }),
      targets: z
        .array(
          z.object({
            target: z.enum(TARGETS).openapi({ description: 'Which time' }),
            rows: z.int().openapi({ description: 'Of the samples, those with this time' }),
            version: z
              .object(comparedScores)
              .openapi({ description: 'How well the named version predicted them, in percent' }),
            other: z
              .object(comparedScores)
              .openapi({ description: 'How well the other version predicted them, in percent' }),
            difference: z
              .object({
                mean: z.number().openapi({ description: 'Below 0 when the named version is better' }),
                low: z.number().openapi({ description: 'Lower end of the interval' }),
                high: z.number().openapi({ description: 'Upper end of the interval' }),
                verdict: z
                  .enum(['better', 'worse', 'unclear'])
                  .openapi({ description: 'unclear: 0 is in the interval' }),
              })
              .openapi({
                description:
                  'MAPE of the version less that of the other, in percentage points, with 90 % of a circular block bootstrap',
              }),
          }),
        )
        .openapi({ description: 'TTFT and TPOT; a time without samples is absent' }),
    })
    .openapi('VersionComparison'),
});
export const readAccuracy = describeOperation({
  ...reading,
  name: 'readModelAccuracy',
  method: 'get',
  path: '/models/accuracy',
  summary: 'How well a model predicted what was reported to all processes, over time',
  input: z.object({
    model: z.string().min(1).max(200),
    since: z.iso
      .datetime({ offset: true })
      .optional()
      .openapi({ description: 'Not before this time, at most 30 days ago; 12 hours ago when absent' }),
    server: z.string().min(1).max(256).optional().openapi({ description: 'Of this server, in place of all pod types' }),
  }),
  output: z
    .object({
      model: z.string(),
      fromMs: z.int().openapi({ description: 'When the first step begins' }),
      stepMs: z.int().openapi({
        description:
          'Five minutes up to 12 hours ago, an hour up to 7 days ago, else six hours; of a server an hour up to a day ago, else six hours',
      }),
      series: z
        .array(
          z.object({
            podType: z
              .string()
              .optional()
              .openapi({ description: 'Absent for a server; empty for servers without one' }),
            server: z.string().optional().openapi({ description: 'The server that was asked for' }),
            target: z.enum(TARGETS).openapi({ description: 'Which time' }),
            points: z
              .array(
                z.object({
                  startMs: z.int().openapi({ description: 'When the step begins' }),
                  version: z
                    .int()
                    .optional()
                    .openapi({ description: 'The version that predicted, 0 for the prior; absent for a server' }),
                  ...liveScores,
                }),
              )
              .openapi({
                description:
                  'Oldest first; two for a step in which two versions predicted, none for one without reports',
              }),
          }),
        )
        .openapi({ description: 'One for each pod type and time, or for each time of the server' }),
    })
    .openapi('ModelAccuracy', { description: 'Scores in percent' }),
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
    model: z.string().min(1).max(200),
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
      .max(200)
      .optional()
      .openapi({ description: 'The name to keep it under; that of an exported model when absent' }),
    promote: z.enum(['true', 'false']).default('true').openapi({ description: 'Serve it from now on' }),
    source: z.string().max(500).optional().openapi({ description: 'Where the file came from, for the lineage' }),
    target: z.enum(TARGETS).optional().openapi({ description: 'What the trees of another library predict' }),
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
    model: z.string().max(200).optional().openapi({ description: 'Only rows of this target model' }),
    kvCapacityTokens: z.coerce
      .number()
      .positive()
      .optional()
      .openapi({ description: 'For logs of requests and benchmarks: tokens that the KV cache of one server holds' }),
    server: z.string().max(256).optional().openapi({ description: 'For benchmarks: the server that was measured' }),
    holdOut: z
      .string()
      .max(10_000)
      .optional()
      .openapi({ description: 'Runs that leave-run-out judges, with commas; each in turn when absent' }),
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
    })
    .openapi('Evaluation', { description: 'All numbers but rows in percent' }),
  takesFileOf: MAX_FILE_BYTES,
});
