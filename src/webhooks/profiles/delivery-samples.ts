/** Each kind of event as each profile sends it, from the golden pairs that the tests compare: for references. */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Json } from '../../http/openapi/api-descriptions.ts';
import type { EventKind } from '../events/event-kind.ts';
import { PROFILE_NAMES, type ProfileName } from '../hooks/hook.ts';
import { PROFILES } from './profiles.ts';

export interface DeliverySample {
  readonly kind: EventKind;
  readonly profile: ProfileName;
  /** The headers of a webhook with the password `secret` and a signature. */
  readonly headers: Readonly<Record<string, string>>;
  /** By the name of the golden pair. */
  readonly bodies: Readonly<Record<string, Json>>;
}

export const SENT_WHEN: Readonly<Record<EventKind, string>> = {
  push: 'A branch was pushed, made or deleted.',
  tag_push: 'A tag was pushed, made or deleted.',
  issue: 'An issue was opened, changed, closed or opened again.',
  note: 'Someone commented on a commit, an issue or a merge request.',
  merge_request: 'A merge request was opened, changed, merged, closed or opened again.',
};

const FIXTURES = new URL('fixtures/', import.meta.url);
const SAMPLE_TIME_MS = Date.UTC(2026, 2, 1, 2);

export function listDeliverySamples(): readonly DeliverySample[] {
  const names = globSync('events/*.json', { cwd: FIXTURES })
    .map((path) => basename(path, '.json'))
    .sort();
  const kinds = Object.keys(SENT_WHEN) as EventKind[];
  return kinds.flatMap((kind) => {
    const own = names.filter((name) => (readFixture(`events/${name}`) as { kind: string }).kind === kind);
    return PROFILE_NAMES.map((profile) => createSample(kind, profile, own));
  });
}

function createSample(kind: EventKind, profile: ProfileName, names: readonly string[]): DeliverySample {
  const bodies = Object.fromEntries(names.map((name) => [name, readFixture(`${profile}/${name}`)]));
  return { kind, profile, headers: sampleHeaders(kind, profile, Object.values(bodies)[0] ?? {}), bodies };
}

function sampleHeaders(kind: EventKind, profile: ProfileName, body: Json): Record<string, string> {
  return PROFILES[profile].headers({
    hookId: 7,
    encryptionType: 1,
    secrets: { current: Buffer.from('secret'), former: [] },
    eventKind: kind,
    deliveryUuid: '607294e6-0e65-417f-a42b-3edd70de32ee',
    body: Buffer.from(JSON.stringify(body)),
    timestampMs: SAMPLE_TIME_MS,
  });
}

export function readFixture(name: string): Json {
  return JSON.parse(readFileSync(new URL(`${name}.json`, FIXTURES), 'utf8')) as Json;
}

/** OpenAPI `webhooks`: one entry for each profile and kind, with the golden bodies as examples. */
export function describeDeliveries(): Readonly<Record<string, Json>> {
  return Object.fromEntries(
    listDeliverySamples().map((sample) => [`${sample.profile}.${sample.kind}`, { post: describeDelivery(sample) }]),
  );
}

function describeDelivery({ kind, profile, headers, bodies }: DeliverySample): Json {
  const examples = Object.fromEntries(Object.entries(bodies).map(([name, value]) => [name, { value }]));
  return {
    operationId: `receive_${profile}_${kind}`,
    tags: [`Deliveries (${profile})`],
    summary: `${kind} in the profile ${profile}`,
    description: SENT_WHEN[kind],
    security: [],
    parameters: Object.entries(headers).map(([name, example]) => ({
      name,
      in: 'header',
      description: 'Sent with each delivery of this profile.',
      schema: { type: 'string' },
      example,
    })),
    requestBody: {
      required: true,
      description: 'As the examples show. A receiver ignores fields that it does not know.',
      content: { 'application/json': { schema: { type: 'object', additionalProperties: true }, examples } },
    },
    responses: {
      '2XX': { description: 'Received. Nothing is sent again.' },
      default: { description: 'Any other status, or none in time: the delivery is tried again.' },
    },
  };
}
