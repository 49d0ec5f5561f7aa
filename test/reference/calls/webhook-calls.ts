/** Every operation on repositories, webhooks, bridges, deliveries and events: of their owner, and of administrators. */
import { createHmac } from 'node:crypto';
import { read } from '../../support/api/api-client.ts';
import type { Calls } from './calls.ts';

const API = '/api/admin/v1';
const SINCE = '2026-01-01T00:00:00Z';
const ZEROS = '0'.repeat(40);
const ACTOR = { name: 'Ada', email: 'ada@example.org' };
const PUSH = {
  kind: 'push' as const,
  ref: 'refs/heads/main',
  before: ZEROS,
  after: 'b'.repeat(40),
  commits: [],
  actor: ACTOR,
};

export async function callOwnRepositories({ api, receiverUrl }: Calls): Promise<void> {
  const doors = { owner: 'root', repo: 'doors' };
  await api.POST('/api/v5/user/repos', { body: { name: 'doors', path: 'doors' } });
  await api.POST('/api/v5/orgs/{org}/repos', {
    params: { path: { org: 'acme' } },
    body: { name: 'gates', path: 'gates' },
  });
  await api.GET('/api/v5/user/repos', { params: { query: { per_page: 10 } } });
  await api.GET('/api/v5/repos/{owner}/{repo}', { params: { path: doors } });
  const bridge = { params: { path: { ...doors, host: 'github' } } } as const;
  await api.PUT('/api/v5/repos/{owner}/{repo}/bridges/{host}', {
    ...bridge,
    body: { secret: 'a secret of 16 letters' },
  });
  await api.GET('/api/v5/repos/{owner}/{repo}/bridges', { params: { path: doors } });
  const ping = { zen: 'Calm' };
  const hmac = createHmac('sha256', 'a secret of 16 letters').update(JSON.stringify(ping)).digest('hex');
  await api.POST('/api/v5/repos/{owner}/{repo}/events', {
    params: { path: doors },
    headers: { 'x-github-event': 'ping', 'x-hub-signature-256': `sha256=${hmac}` },
    body: ping as never,
  });
  await api.DELETE('/api/v5/repos/{owner}/{repo}/bridges/{host}', bridge);
  await callOwnHooks({ api, url: receiverUrl, doors });
  await api.DELETE('/api/v5/repos/{owner}/{repo}', { params: { path: doors } });
}

interface OwnHooks extends Pick<Calls, 'api'> {
  readonly url: string;
  readonly doors: { readonly owner: string; readonly repo: string };
}

async function callOwnHooks({ api, url, doors }: OwnHooks): Promise<void> {
  const hooks = '/api/v5/repos/{owner}/{repo}/hooks';
  const body = { url, push_events: true, issues_events: true };
  const { id } = await read(api.POST(hooks, { params: { path: doors }, body }));
  const one = { params: { path: { ...doors, id: String(id) } } };
  await api.GET(hooks, { params: { path: doors } });
  await api.GET(`${hooks}/{id}`, one);
  await api.PATCH(`${hooks}/{id}`, { ...one, body: { url, note_events: true } });
  await api.POST(`${hooks}/{id}/tests`, one);
  await api.POST('/api/v5/repos/{owner}/{repo}/events', { params: { path: doors }, body: PUSH });
  const deliveries = await read(api.GET(`${hooks}/{id}/deliveries`, one));
  const delivery = { params: { path: { ...one.params.path, delivery_id: String(deliveries[0]!.id) } } };
  await api.GET(`${hooks}/{id}/deliveries/{delivery_id}`, delivery);
  await api.POST(`${hooks}/{id}/deliveries/{delivery_id}/redeliver`, delivery);
  await api.POST(`${hooks}/{id}/send-waiting`, one);
  await api.POST(`${hooks}/{id}/replay`, { params: { ...one.params, query: { since: SINCE } } });
  await api.DELETE(`${hooks}/{id}`, one);
}

export async function callAllRepositories({ api, receiverUrl }: Calls): Promise<void> {
  const windows = { params: { path: { owner: 'root', name: 'windows' } } };
  await api.POST(`${API}/repositories`, { body: { owner: 'root', name: 'windows' } });
  await api.GET(`${API}/repositories`, { params: { query: { owner: 'root' } } });
  await api.GET(`${API}/repositories/{owner}/{name}`, windows);
  const body = { repository: 'root/windows', url: receiverUrl, password: 'sesame' };
  const { id } = await read(api.POST(`${API}/hooks`, { body }));
  const one = { params: { path: { id } } };
  await api.GET(`${API}/hooks`, { params: { query: { repository: 'root/windows' } } });
  await api.GET(`${API}/hooks/{id}`, one);
  await api.PATCH(`${API}/hooks/{id}`, { ...one, body: { issues_events: true } });
  await api.POST(`${API}/hooks/{id}/disable`, one);
  await api.POST(`${API}/hooks/{id}/enable`, one);
  const published = { ...windows, body: { sample: 'push' } } as const;
  await api.POST(`${API}/repositories/{owner}/{name}/events`, published);
  const tested = await read(api.POST(`${API}/hooks/{id}/test`, one));
  await api.GET(`${API}/hooks/{id}/deliveries`, { params: { ...one.params, query: { per_page: 10 } } });
  const delivery = { params: { path: { id, delivery: String(tested.delivery) } } };
  await api.GET(`${API}/hooks/{id}/deliveries/{delivery}`, delivery);
  await api.POST(`${API}/hooks/{id}/deliveries/{delivery}/redeliver`, delivery);
  await api.POST(`${API}/hooks/{id}/send-waiting`, one);
  await api.POST(`${API}/hooks/{id}/replay`, { ...one, body: { since: SINCE } });
  await api.DELETE(`${API}/hooks/{id}`, one);
  await api.DELETE(`${API}/repositories/{owner}/{name}`, windows);
}
