/** Lists the English texts of the what-if and capacity pages. */
import { plural } from '../../language/plural.ts';

/** Features of the trees that are not inputs. */
const PARTS: Readonly<Record<string, string>> = {
  effective_tokens: 'Uncached prompt tokens',
  tokens_ahead: 'Uncached prompt tokens and tokens in flight',
  tokens_per_request: 'Tokens in flight for each request',
  running_minus_waiting: 'Requests running less those waiting',
  kv_per_running: 'KV cache for each running request',
  since_first_token_ms: 'Time since the last first token',
  first_token_gap_ms: 'Time between first tokens',
  waiting_tokens: 'Tokens that wait',
  oldest_waiting_ms: 'Time that the oldest request has waited',
  expected_wait_ms: 'Expected wait',
  since_dispatch_ms: 'Time since the last dispatch',
  since_earlier_dispatch_ms: 'Time since the dispatch before',
  server_ttft_level: 'TTFT offset of the server',
  server_tpot_level: 'TPOT offset of the server',
};

export const whatIfTexts = {
  title: 'What if',
  link: 'What if: predict for a request and a load',
  lead: 'The times that are predicted for a request on a server with this load, by the model that this process serves now. Nothing is recorded. An empty number is 0.',
  /** The meaning of a field, as the schema of the inputs describes it. */
  meaning: (_name: string, english: string) => english,
  /** Terms of the physics and features of the trees, as the model names them. */
  partName: (name: string) => PARTS[name] ?? name,
  hint: (meaning: string, range: string) => `${meaning}. ${range}`,
  statisticNames: { mean: 'mean' } as Readonly<Record<string, string>>,
  text: 'At most 256 bytes.',
  count: 'A number from 0 to 2,147,483,647.',
  share: 'A share from 0 to 1: 0.8 is 80 %.',
  aboveOne: (names: string) =>
    `More than 1 was entered for: ${names}. A share is expected from 0 to 1, so that 0.8 is 80 %; the answer below is for the number as it is.`,
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
    none: 'Nothing can be shown yet: a served version and at least 50 samples are needed.',
    measured: (version: string, rows: number) => `${version}, ${plural(rows, 'sample', 'samples')}`,
    matters: (target: string) => `${target}: which inputs matter`,
    mattersLead: (mape: string) =>
      `The mean error is ${mape} %. When the values of one input are shuffled among the samples, it grows by the percentage points below. 0: the predictions do not need this input, or another input has the same information.`,
    input: 'Input',
    picture: 'Beside the largest',
    added: 'Error added',
    points: (points: string) => `${points} pp`,
    prices: (target: string) => `${target}: the price of a load`,
    pricesLead:
      'The median prediction if all samples had this value, everything else as it was, over the values of 96 of 100 samples. In practice loads rise together; here only one changes.',
    price: (ms: string, value: string, last: { readonly ms: string; readonly value: string }) =>
      `${ms} ms at ${value}, ${last.ms} ms at ${last.value}`,
  },
  capacity: {
    title: 'Capacity',
    link: 'Capacity: how many requests the servers can take',
    lead: 'The highest rate of requests at which the servers stay within latency limits, and how much more each can take now. It is computed from the newest 20,000 samples, for requests that arrive at random and go to the server with the fewest under way.',
    none: 'Nothing can be shown yet: no version of this model is served.',
    fields: {
      ttft_ms: 'Limit of TTFT, ms',
      tpot_ms: 'Limit of TPOT, ms',
      quantile: 'Share of requests within the limits',
      prompt_tokens: 'Mean length of a prompt, tokens',
      output_tokens: 'Mean length of an answer, tokens',
      servers: 'Servers',
      pod_type: 'Pod type',
    },
    hints: {
      ttft_ms: 'A number from 0.001 to 86,400,000; empty for no limit.',
      tpot_ms: 'The same for the time per output token. One of the two limits must be given.',
      quantile: 'A number from 0.5 to 0.99: 0.9 is the p90.',
      prompt_tokens: 'A number from 1 to 10,000,000; empty for the mean of the samples.',
      output_tokens:
        'A number from 1 to 1,000,000; empty for the mean of the samples that have the length of their answer. Required if none has.',
      servers: 'One server, or several with commas; empty for the pool of all.',
      pod_type: 'Empty for servers without one.',
    },
    known: (names: string, count: number) => `${count === 1 ? 'Known is' : 'Known are'} ${names}.`,
    submit: 'Find the capacity',
    takes: 'It takes some seconds.',
    answer: 'Answer',
    idle: 'Not even idle servers keep these limits.',
    found: (rate: string, underWay: string, broken: { readonly what: string; readonly limit: string }) =>
      `The servers can take ${rate} requests a second, with ${underWay} under way on average; above it, the ${broken.what} exceeds its limit of ${broken.limit} ms.`,
    plateau: (
      rate: string,
      underWay: string,
      broken: { readonly what: string; readonly limit: string; readonly from: string; readonly to: string },
    ) =>
      `The servers can take about ${rate} requests a second, with ${underWay} under way on average; the ${broken.what} exceeds its limit of ${broken.limit} ms somewhere between ${broken.from} and ${broken.to}.`,
    atLeast: (rate: string, underWay: string) =>
      `The servers can take at least ${rate} requests a second, with ${underWay} under way on average; the samples show no higher load.`,
    asked: (version: number, prompt: string, answer: string) =>
      `Version ${version}; prompts of ${prompt} tokens and answers of ${answer} on average`,
    summary: (ms: string, rate: string) => `${ms} ms at ${rate} requests a second`,
    summaryExtrapolated: (rate: string) => `; extrapolated above ${rate}`,
    extrapolated: 'Extrapolated: no sample has so many requests under way',
    extrapolatedRate: (rate: string) => `${rate} (extrapolated)`,
    perSecond: '/s',
    limitAt: (ms: string) => `Limit, ${ms} ms`,
    answerAt: (rate: string) => `Answer, ${rate} requests a second`,
    values: 'Latency by rate of requests',
    rate: 'Requests a second',
    headroom: 'Headroom by server',
    headroomLead:
      'How many requests each server can have under way while the limits hold, at most twice as many as its samples show, and how many it has now: by its own metrics when they are scraped, else as reported within the last minute.',
    serverRate: 'Requests a second',
    maximum: 'Can have under way',
    underWay: 'Under way now',
    room: 'Room',
    used: 'Used',
  },
} as const;
