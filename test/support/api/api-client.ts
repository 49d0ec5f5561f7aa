/** A client of the service with types generated from docs/reference/openapi.json, which checks each answer against that document. */
import assert from 'node:assert/strict';
import createClient, { type Client } from 'openapi-fetch';
import type { paths } from '../../reference/openapi-types.ts';
import { checkAnswer, describedOperations } from './api-document.ts';

export interface ApiClient {
  readonly api: Client<paths>;
  /** The operations that were called. */
  readonly called: ReadonlySet<string>;
}

export function createApiClient(baseUrl: string, token: string): ApiClient {
  const called = new Set<string>();
  const api = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` }, redirect: 'manual' });
  api.use({
    async onResponse({ schemaPath, request, response }) {
      const operation = describedOperations.find(
        ({ path, method }) => path === schemaPath && method === request.method,
      );
      assert.ok(operation !== undefined, `${request.method} ${schemaPath} is not described`);
      const copy = response.clone();
      if (response.status >= 400) assert.fail(`${operation.operationId}: ${response.status} ${await copy.text()}`);
      await checkAnswer(operation, copy);
      called.add(operation.operationId);
    },
  });
  return { api, called };
}

/** Returns the body of an answer, after a check that it has one. */
export async function read<Data>(answer: Promise<{ readonly data?: Data }>): Promise<Data> {
  const { data } = await answer;
  assert.ok(data !== undefined);
  return data;
}
