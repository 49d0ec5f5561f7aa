/** Every operation of the administration on people, organizations and applications. */

import { read } from '../../support/api/api-client.ts';
import type { Calls } from './calls.ts';

const API = '/api/admin/v1';

export async function callPeople({ api }: Calls): Promise<void> {
  const ada = { params: { path: { login: 'ada' } } };
  const person = { login: 'ada', name: 'Ada', email: 'ada@example.org', password: 'correct horse battery' };
  await api.POST(`${API}/people`, { body: person });
  await api.GET(`${API}/people`, { params: { query: { q: 'ad', limit: 10 } } });
  await api.GET(`${API}/people/{login}`, ada);
  await api.POST(`${API}/people/{login}/disable`, ada);
  await api.POST(`${API}/people/{login}/enable`, ada);
  await api.PUT(`${API}/people/{login}/password`, { ...ada, body: { password: 'another horse battery' } });
  await api.DELETE(`${API}/people/{login}/second-step`, { params: { path: { login: 'linus' } } });
  await api.PUT(`${API}/people/{login}/email`, { ...ada, body: { email: 'ada@example.com' } });
  await api.PUT(`${API}/people/{login}/admin`, { ...ada, body: { isAdmin: false } });
  await api.POST(`${API}/invitations`, { body: { login: 'joan', name: 'Joan' } });
  await api.POST(`${API}/people/{login}/password-link`, { params: { path: { login: 'joan' } } });
  const made = await read(api.POST('/api/v5/user/access_tokens', { body: { name: 'ci', scopes: ['all_user'] } }));
  const root = { login: 'root' };
  await api.GET(`${API}/people/{login}/tokens`, { params: { path: root } });
  const token = { params: { path: { ...root, tokenId: String(made.id) } } };
  await api.DELETE(`${API}/people/{login}/tokens/{tokenId}`, token);
}

export async function callOrganizations({ api }: Calls): Promise<void> {
  await api.POST(`${API}/organizations`, { body: { login: 'acme', name: 'Acme', owner: 'root' } });
  await api.GET(`${API}/organizations`, { params: { query: { limit: 10 } } });
  const member = { params: { path: { organization: 'acme', login: 'ada' } } };
  await api.PUT(`${API}/organizations/{organization}/members/{login}`, { ...member, body: { role: 'member' } });
  await api.GET(`${API}/organizations/{organization}/members`, { params: { path: { organization: 'acme' } } });
  await api.DELETE(`${API}/organizations/{organization}/members/{login}`, member);
}

export async function callAllApplications({ api }: Calls): Promise<void> {
  const form = { name: 'Board', owner: 'root', redirectUris: ['https://board.example/cb'] };
  const made = await read(api.POST(`${API}/applications`, { body: form }));
  const one = { params: { path: { clientId: made.client_id } } };
  await api.GET(`${API}/applications`, {});
  await api.GET(`${API}/applications/{clientId}`, one);
  await api.POST(`${API}/applications/{clientId}/secrets`, one);
  const first = { params: { path: { clientId: made.client_id, slot: 1 } } };
  await api.DELETE(`${API}/applications/{clientId}/secrets/{slot}`, first);
  await api.POST(`${API}/applications/{clientId}/disable`, one);
  await api.POST(`${API}/applications/{clientId}/enable`, one);
  await api.DELETE(`${API}/applications/{clientId}`, one);
  await api.GET(`${API}/signing-keys`, {});
  await api.POST(`${API}/signing-keys/replace`, {});
  await api.GET(`${API}/audit`, { params: { query: { by: 'root', limit: 50 } } });
}

export async function callModels({ api, trace }: Calls): Promise<void> {
  const id = { params: { query: { id: 'm@2' } } };
  await api.GET(`${API}/models`, { params: { query: { model: 'm' } } });
  await api.GET(`${API}/models/version`, id);
  await api.GET(`${API}/models/compare`, id);
  await api.GET(`${API}/models/accuracy`, { params: { query: { model: 'm' } } });
  const file = await read(api.GET(`${API}/models/file`, { ...id, parseAs: 'arrayBuffer' }));
  await api.POST(`${API}/models/promote`, { body: { id: 'm@2' } });
  await api.POST(`${API}/models/rollback`, { body: { model: 'm' } });
  const asFile = { headers: { 'content-type': 'application/octet-stream' }, bodySerializer: (body: unknown) => body };
  const imported = { params: { query: { model: 'copy', promote: 'false' } }, ...asFile } as const;
  await api.POST(`${API}/models/import`, { ...imported, body: file as unknown as string });
  const evaluated = { params: { query: { protocol: 'time' } }, ...asFile } as const;
  await api.POST(`${API}/models/evaluate`, { ...evaluated, body: trace as unknown as string });
}
