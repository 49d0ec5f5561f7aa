/** Lists the English texts of the pages that describe the API. Texts of the document stay English. */
import { frameTexts } from '../pages/frame-texts.ts';

export const referenceTexts = {
  ...frameTexts,
  title: 'API reference',
  lead: 'Every operation of this service, from its OpenAPI document.',
  eventsLead: 'What webhooks send to a receiver, in each profile.',
  download: 'OpenAPI document (JSON)',
  events: 'Deliveries of webhooks',
  operations: 'Operations',
  schemas: 'Schemas',
  sections: 'Sections',
  takes: 'Security',
  anonymous: 'no token',
  parameters: 'Parameters',
  body: 'Request body',
  answer: (status: string) => `Answer ${status}`,
  required: 'required',
  verification: {
    title: 'How a receiver is sure of the sender',
    lead: 'A delivery carries a proof that only this service and the receiver can make, with the key of the webhook. Compute it over the bytes as they came, before any JSON is parsed, and compare in constant time. Refuse a delivery whose proof is wrong.',
    headers:
      'The programs check X-GitCode-Signature-256, which the profile gitcode sends with encryption_type 1, and X-Hub-Signature-256 of github: both are computed alike. With encryption_type 0, the default, gitcode sends the password in X-GitCode-Token instead: compare it in constant time. Receivers of gitee and gitlab check webhook-signature, which every profile has with both values.',
    usage:
      'Each program takes the key and the value of the header as arguments and the body on standard input, and ends with 0 when the delivery is genuine. The shell cannot compare in constant time: use its program to try things out, not in a receiver.',
    standard: 'webhook-signature',
    standardLead:
      'It covers the time too, and has a signature for each key during the day after a change of the key. The program takes the key and the headers webhook-id, webhook-timestamp and webhook-signature. In other languages, use a library of Standard Webhooks (https://www.standardwebhooks.com/).',
  },
  arrayOf: 'array of',
  valuesOf: 'object with values of',
  above: (limit: string) => `above ${limit}`,
  atLeast: (limit: string) => `at least ${limit}`,
  atMost: (limit: string) => `at most ${limit}`,
  between: (least: string, most: string) => `${least} to ${most}`,
  characters: (range: string) => `${range} characters`,
  items: (range: string) => `${range} items`,
  preset: 'default',
  and: 'and',
  or: 'or',
  any: 'any',
  example: (name: string) => `Example: ${name}`,
} as const;
