/** The token requests of a service load: chains of refreshes, and codes that are exchanged once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_FAMILIES } from '../../../src/authorization/tokens/surplus-tokens-store.ts';
import type { Store } from '../../../src/database/store.ts';
import { realWorld } from '../../../src/world.ts';
import {
  type Answer,
  type AuthorizationEndpoint,
  type Fields,
  obtainCode,
  obtainTokens,
  registerApplication,
  type SignedIn,
} from '../authorization/authorization-server.ts';
import { createCaller } from '../authorization/load-caller.ts';
import {
  type CallLoad,
  callUntilAnswered,
  type FinalAnswer,
  post,
  RETRY_MS,
  shareNumbers,
} from './service-load-calls.ts';

export interface TokenLoad extends CallLoad {
  readonly store: Store;
  readonly scale: { readonly events: number; readonly refreshes: number; readonly codes: number };
  readonly failures: string[];
  readonly counts: CallLoad['counts'] & {
    accepted: number;
    refreshed: number;
    exchanged: number;
    spentUnanswered: number;
  };
}

const CHAINS = 24;
const CODE_CALLERS = 2;

interface Exchanges {
  readonly tokens: readonly string[];
  readonly codes: readonly Fields[];
}

export async function prepareExchanges({
  store,
  programs,
  scale,
}: Pick<TokenLoad, 'store' | 'programs' | 'scale'>): Promise<Exchanges> {
  const at = { url: programs[0]!.httpUrl, store, world: realWorld };
  const person = await createCaller(at);
  const application = await registerApplication(at);
  const tokens: string[] = [];
  for (let chain = 0; chain < CHAINS; chain += 1)
    tokens.push((await obtainTokens(at, person, application)).refresh_token);
  const codes: Fields[] = [];
  while (codes.length < scale.codes)
    codes.push(...(await obtainCodes(at, person, Math.min(scale.codes - codes.length, MAX_FAMILIES))));
  return { tokens, codes };
}

/** Each caller has a separate application, since the service ends the oldest sign-ins of a person beyond `MAX_FAMILIES` for one. */
async function obtainCodes(at: AuthorizationEndpoint, person: SignedIn, count: number): Promise<Fields[]> {
  const { clientId, clientSecret } = await registerApplication(at);
  const codes: Fields[] = [];
  for (let made = 0; made < count; made += 1) {
    const code = await obtainCode(at, person, { client_id: clientId });
    codes.push({ grant_type: 'authorization_code', code, client_id: clientId, client_secret: clientSecret });
  }
  return codes;
}

function postToken(url: string, fields: Fields): Promise<Answer> {
  return post(`${url}/oauth/token`, new URLSearchParams(fields).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
  });
}

/** One of this many refreshes goes to two processes at the same time: both must get the same successor. */
const TWICE_EVERY = 10;

export async function refreshAll(state: TokenLoad, tokens: readonly string[]): Promise<void> {
  const chains = [...tokens];
  await Promise.all(
    chains.map(async (_, chain) => {
      while (state.counts.refreshed < state.scale.refreshes) {
        const fields = { grant_type: 'refresh_token', refresh_token: chains[chain]! };
        const isTwice = state.counts.refreshed % TWICE_EVERY === 0;
        const refresh = () => callUntilAnswered(state, (url) => postToken(url, fields));
        const answers = await Promise.all(isTwice ? [refresh(), refresh()] : [refresh()]);
        const texts = new Set(answers.map(({ text }) => text));
        const [{ status, text }] = answers as [FinalAnswer];
        if (status !== 200 || texts.size > 1)
          return void state.failures.push(
            `refresh: ${answers.map((each) => `${each.status} ${each.text}`).join(' | ')}`,
          );
        chains[chain] = (JSON.parse(text) as { refresh_token: string }).refresh_token;
        state.counts.refreshed += 1;
      }
    }),
  );
}

export function exchangeAll(state: TokenLoad, codes: readonly Fields[]): Promise<unknown> {
  return shareNumbers(codes.length, CODE_CALLERS, async (number) => {
    const fields = codes[number]!;
    // Spread over the whole load, not only at its beginning.
    while (state.counts.accepted < (state.scale.events * number) / codes.length) await sleep(RETRY_MS);
    const { status, text, tries } = await callUntilAnswered(state, (url) => postToken(url, fields));
    if (status === 200) state.counts.exchanged += 1;
    else if (status === 400 && tries > 1) state.counts.spentUnanswered += 1;
    else state.failures.push(`code: ${status} ${text}`);
  });
}
