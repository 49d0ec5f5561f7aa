/** Collects samples of each kind of event in each profile, for the API reference. */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Json } from '../../http/openapi/api-descriptions.ts';
import type { EventKind } from '../events/event-kind.ts';
import { type EncryptionType, PROFILE_NAMES, type ProfileName } from '../hooks/hook.ts';
import { describeHeader } from './header-meanings.ts';
import { PROFILES } from './profiles.ts';

export interface DeliverySample {
  readonly kind: EventKind;
  readonly profile: ProfileName;
  /** The headers of a webhook that signs with the key `secret`, and those that only a webhook with a password has. */
  readonly headers: readonly SampleHeader[];
  /** The bodies, by the name of their golden file. */
  readonly bodies: Readonly<Record<string, Json>>;
}

export interface SampleHeader {
  readonly name: string;
  readonly sample: string;
  readonly meaning: string;
  /** Whether every webhook with a key or a password sends the header. */
  readonly isAlways: boolean;
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
  const [body = {}] = Object.values(bodies);
  const [withPassword, signed] = ([0, 1] as const).map((encryptionType) =>
    sampleHeaders({ kind, profile, body, encryptionType }),
  ) as [Record<string, string>, Record<string, string>];
  const headers = Object.entries({ ...withPassword, ...signed }).map(([name, sample]) => ({
    name,
    sample,
    meaning: describeHeader(name),
    isAlways: name in withPassword && name in signed,
  }));
  return { kind, profile, headers, bodies };
}

interface SampleRequest {
  readonly kind: EventKind;
  readonly profile: ProfileName;
  readonly body: Json;
  readonly encryptionType: EncryptionType;
}

function sampleHeaders({ kind, profile, body, encryptionType }: SampleRequest): Record<string, string> {
  return PROFILES[profile].headers({
    hookId: 7,
    encryptionType,
    secrets: { current: Buffer.from('secret'), previous: [] },
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
    description: `${SENT_WHEN[kind]} The sender proves itself by the headers with a signature or a password: check them before the body is used.`,
    security: [],
    parameters: headers.map(({ name, sample, meaning, isAlways }) => ({
      name,
      in: 'header',
      required: isAlways,
      description: meaning,
      schema: { type: 'string' },
      example: sample,
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
