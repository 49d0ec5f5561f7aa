/** A console with a repository and a receiver, and what people do on the pages of its webhooks. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { waitUntil } from '../basics/wait-until.ts';
import type { Answer, FormClient } from '../network/form-client.ts';
import { type Receiver, startReceiver } from '../network/receiver.ts';
import { type ConsoleService, startConsoleService } from './console-service.ts';

export const REPOSITORY = '/webhooks/ada/doors';

export interface Stage {
  readonly service: ConsoleService;
  readonly client: FormClient;
  readonly receiver: Receiver;
}

export async function startHookPages(t: TestContext, answer?: Parameters<typeof startReceiver>[0]): Promise<Stage> {
  const service = await startConsoleService();
  t.after(() => service[Symbol.asyncDispose]());
  const receiver = await startReceiver(answer);
  t.after(() => receiver[Symbol.asyncDispose]());
  await service.addUser('ada');
  const client = await service.openAs('ada');
  const made = await client.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name: 'doors', description: '' });
  assert.equal(made.location, `${REPOSITORY}?done=created`);
  return { service, client, receiver };
}

export const FORM = { encryption_type: '1', password: 'k3y', profile: 'gitcode', push_events: '1' };

/** Returns the path of its page. */
export async function createHook(client: FormClient, url: string, fields: Readonly<Record<string, string>> = {}) {
  const made = await client.submit(`${REPOSITORY}/new`, REPOSITORY, { ...FORM, url, ...fields });
  assert.equal(made.status, 303, made.body);
  return (made.location ?? '').replace('?done=created', '');
}

/** Presses a button of the page at `path`. */
export function pressButton(
  client: FormClient,
  path: string,
  name: string,
  fields: Readonly<Record<string, string>> = {},
) {
  return client.submit(path, `${path}/${name}`, fields);
}

export function textOf({ body }: Answer): string {
  return body
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'");
}

/** Waits until the page shows the text: the work of workers shows shortly after. */
export async function waitForText(client: FormClient, path: string, pattern: RegExp): Promise<void> {
  await waitUntil(async () => pattern.test((await client.get(path)).body));
}
