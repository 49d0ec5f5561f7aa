/** Texts of the page that predicts for a request and a load that a person types. */
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
} as const;
