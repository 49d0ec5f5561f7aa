/** Fields that mean the same in every area. */
import type { ApiDescriptions } from './api-descriptions.ts';

export const commonDescriptions: ApiDescriptions = {
  operations: {},
  fields: {
    id: 'Identifier.',
    name: 'Name for people.',
    type: 'Kind.',
    url: 'Web address.',
    title: 'Title.',
    description: 'Description for people.',
    message: 'Text for people.',
    created_at: 'When it was made (RFC 3339).',
    updated_at: 'When it last changed (RFC 3339).',
    createdAtMs: 'When it was made, in milliseconds since 1970.',
    next: 'Where the next page begins; absent on the last page.',
    page: 'Number of the page, from 1.',
    per_page: 'Entries on a page.',
    limit: 'Largest number of entries in the answer.',
    since: 'Only what happened at or after this time.',
    until: 'Only what happened before this time.',
    'Problem.type': 'Always about:blank (RFC 9457).',
    'Problem.title': 'Kind of the error in words.',
    'Problem.status': 'The HTTP status.',
    'Problem.detail': 'What was wrong, and what is allowed.',
    'Problem.code': 'Kind of the error for programs.',
    'Problem.field': 'The field that was wrong.',
    traceId: 'Finds the request in the log.',
    trace_id: 'Finds the request in the log.',
    'Problem.traceId': 'Finds the request in the log.',
  },
  examples: { url: 'https://example.com/hooks', name: 'Example', id: 1 },
};
