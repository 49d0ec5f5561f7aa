/** Declares the operations that compare versions and show accuracy over time. */
import { z } from '@hono/zod-openapi';
import { describeOperation } from '../../operations/operation.ts';
import { MAX_MODEL_ID_BYTES, MAX_MODEL_NAME_BYTES } from '../schema/model-name.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';

export const reading = { tag: 'Models', scope: 'models:read' } as const;
export const id = z.string().min(1).max(MAX_MODEL_ID_BYTES).openapi({ description: 'name@version' });

const percent = z.number();
const liveScores = {
  rows: z.int().openapi({ description: 'Times that were reported' }),
  mape: percent.openapi({ description: 'Mean error, relative to the observed time' }),
  mdape: percent.openapi({ description: 'Median error, interpolated; 100 stands for larger ones too' }),
  wape: percent.openapi({ description: 'Sum of the errors divided by the sum of the observed times' }),
  bias: percent.openapi({ description: 'Above 0 when predictions are too long' }),
  p50Coverage: percent.openapi({ description: 'Times that were not above the predicted median' }),
  p90Coverage: percent.openapi({ description: 'Times that were not above the predicted p90' }),
};
export const liveSchema = z
  .object(liveScores)
  .openapi('LiveScores', { description: 'All numbers but rows in percent' });

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
  summary: 'Let two versions predict the same newest samples, each without learning from later reports',
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
            target: z.enum(PREDICTION_TARGETS).openapi({ description: 'Which time' }),
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
    model: z.string().min(1).max(MAX_MODEL_NAME_BYTES),
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
            target: z.enum(PREDICTION_TARGETS).openapi({ description: 'Which time' }),
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
