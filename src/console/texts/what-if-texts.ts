/** Texts of the page that predicts for a request and a load that a person types. */
import { plural } from '../../language/plural.ts';

export const whatIfTexts = {
  title: 'What if',
  link: 'What if: predict for a request and a load',
  lead: 'The times that are predicted for a request on a server with this load, by the model that this process serves now. Nothing is recorded. An empty number is 0.',
  /** What a field means, as the schema of the inputs says it. */
  meaning: (_name: string, english: string) => english,
  /** Terms of the physics and features of the trees, as the model names them. */
  partName: (name: string) => name,
  hint: (meaning: string, range: string) => `${meaning}. ${range}`,
  statisticNames: { mean: 'mean' } as Readonly<Record<string, string>>,
  text: 'At most 256 bytes.',
  count: 'A number from 0 to 2,147,483,647.',
  number: 'A number of 0 or more.',
  servers: (names: string) => `For example: ${names}.`,
  parts:
    'Milliseconds are added up first: what each load costs. Factors then multiply the sum. “level” and “base” are the same for every request; the name of an input is the correction for its value; “others” are all inputs whose correction is close to 1.',
  submit: 'Predict',
  answer: (id: string) => `Answered by ${id}`,
  predicted: (target: string, ms: string, statistic: string) => `${target}: ${ms} ms (${statistic})`,
  statistics: (target: string) => `${target}: mean and quantiles`,
  statistic: 'Statistic',
  milliseconds: 'ms',
  madeOf: (target: string) => `What the ${target} is made of`,
  part: 'Part',
  effect: 'Effect',
  server: 'server while learning',
  since: 'reports since, and statistic',
  result: 'Prediction',
  prior: 'the prior',
  effects: {
    title: 'What matters',
    link: 'What matters: inputs, and the price of each load',
    lead: 'What each input does to the predictions of the served version, measured on the newest samples in the store. It is measured again after an hour.',
    none: 'Nothing can be shown yet: it takes a version that is served, and at least 50 samples.',
    measured: (version: string, rows: number) => `${version}, ${plural(rows, 'sample', 'samples')}`,
    matters: (target: string) => `${target}: which inputs matter`,
    mattersLead: (mape: string) =>
      `The mean error is ${mape} %. When the values of one input are shuffled among the samples, it grows by so many percentage points. 0: the predictions do not need this input, or another one says the same.`,
    input: 'Input',
    picture: 'Beside the largest',
    added: 'Error added',
    points: (points: string) => `${points} pp`,
    prices: (target: string) => `${target}: the price of a load`,
    pricesLead:
      'The median prediction if all samples had this value, everything else as it was, over the values of 96 of 100 samples. Loads that rise together in the field are moved apart here.',
    price: (ms: string, value: string, last: { readonly ms: string; readonly value: string }) =>
      `${ms} ms at ${value}, ${last.ms} ms at ${last.value}`,
    fields: {
      input_token_length: 'Prompt tokens',
      prefix_cache_score: 'Share of the prompt in the prefix cache',
      num_request_waiting: 'Requests waiting',
      num_request_running: 'Requests running',
      kv_cache_usage: 'KV cache in use',
      inflight_tokens: 'Tokens in flight',
      hbm_utilization: 'Accelerator memory in use',
      ai_core_utilization: 'Compute cores in use',
      bandwidth_utilization: 'Memory bandwidth in use',
    },
  },
} as const;
