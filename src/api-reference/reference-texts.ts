/** The English texts of the pages that describe the API. What the document says stays English. */
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
  arrayOf: 'array of',
  and: 'and',
  or: 'or',
  any: 'any',
  example: (name: string) => `Example: ${name}`,
} as const;
