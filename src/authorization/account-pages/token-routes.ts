/** Serves the pages of a person's personal access tokens: create, show once, revoke. */
import { html } from 'hono/html';
import { Failure } from '../../errors.ts';
import {
  type Mistake,
  renderCheck,
  renderCsrf,
  renderDone,
  renderField,
  renderGroup,
  renderMistake,
  renderQuestion,
  renderSelect,
} from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { ifThere, readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import { API_SCOPES, isScope, listGrantable, type Scope } from '../applications/scope.ts';
import { describeScope } from '../messages/describe-scope.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { createPersonalToken, DEFAULT_PERSONAL_TOKEN_DAYS, revokePersonalToken } from '../tokens/personal-token.ts';
import { listPersonalTokens, type PersonalToken } from '../tokens/personal-token-store.ts';
import type { AccountPages, PageRequest, Submission } from './account-pages.ts';
import { redirectWithSecret, takeOnce } from './shown-once.ts';

const DAY_MS = 86_400_000;
const LIFETIMES_DAYS = [7, 30, 90, 365];

interface TokenValues {
  readonly name: string;
  readonly days: string;
  readonly scopes: readonly Scope[];
  /** The repositories as they were typed: OWNER/NAME, separated by spaces. */
  readonly repositories: string;
}

const FRESH: TokenValues = { name: '', days: String(DEFAULT_PERSONAL_TOKEN_DAYS), scopes: [], repositories: '' };

export function addTokenRoutes({ context, page, form, longForm }: AccountPages): void {
  page('/account/tokens', (request) => listTokens(context, request));
  longForm('/account/tokens', (submission) => createToken(context, submission));
  form('/account/tokens/delete', (submission) => deleteToken(context, submission));
}

async function listTokens(context: AccountPages['context'], request: PageRequest): Promise<Response> {
  const messages = readMessages(request.c);
  const { texts, isSpent } = await takeOnce(context, request);
  const [secret, ...unknown] = texts;
  const done = isSpent ? messages.shownBefore : findDone(request.c, { deleted: messages.tokens.deleted });
  return showTokens(context, request, { values: FRESH, secret, unknown, done });
}

async function createToken(context: AccountPages['context'], submission: Submission): Promise<Response> {
  const messages = readMessages(submission.c);
  const values = readValues(submission);
  try {
    const { secret, unknown } = await makeToken(context, submission, values);
    return await redirectWithSecret(context, submission, { path: '/account/tokens', texts: [secret, ...unknown] });
  } catch (error) {
    return showTokens(context, submission, { values, mistake: toMistake(messages, error) });
  }
}

async function deleteToken(context: AccountPages['context'], submission: Submission): Promise<Response> {
  const { c, session, form } = submission;
  const tokenId = readField(form, 'token_id');
  const revoked = { userId: session.user.id, tokenId, address: clientAddress(c) };
  await ifThere(async () => {
    await revokePersonalToken(context.store, context.world, revoked);
    context.countToken('revoked', 'personal');
  });
  return c.redirect('/account/tokens?done=deleted', 303);
}

function readValues({ form, session }: Submission): TokenValues {
  return {
    name: readField(form, 'name'),
    days: readField(form, 'days'),
    scopes: listGrantable(form.getAll('scope').filter(isScope), session.user),
    repositories: readField(form, 'repositories').trim(),
  };
}

async function makeToken(
  { store, world, countToken, findUnknownRepositories }: AccountPages['context'],
  request: PageRequest,
  values: TokenValues,
): Promise<{ readonly secret: string; readonly unknown: readonly string[] }> {
  const { secret, unknownRepositories } = await createPersonalToken(store, world, {
    userId: request.session.user.id,
    credentialGeneration: request.session.user.credentialGeneration,
    name: values.name,
    scopes: values.scopes,
    repositories: values.repositories === '' ? undefined : values.repositories.split(/[\s,]+/),
    findUnknownRepositories,
    expiresAtMs: readEnd(values.days, world.nowMs()),
    address: clientAddress(request.c),
  });
  countToken('issued', 'personal');
  return { secret, unknown: unknownRepositories };
}

/** Returns undefined, for a token that does not expire, only if the person chose that. */
function readEnd(days: string, nowMs: number): number | undefined {
  if (days === 'none') return undefined;
  const chosen = LIFETIMES_DAYS.find((offered) => String(offered) === days);
  if (chosen !== undefined) return nowMs + chosen * DAY_MS;
  const offered = [...LIFETIMES_DAYS, 'none'].join(', ');
  throw new Failure('invalid', `Cannot create the token: days must be one of ${offered}, got "${days.slice(0, 100)}"`, {
    field: 'days',
  });
}

interface TokensShown {
  readonly values: TokenValues;
  readonly secret?: string | undefined;
  /** Those repositories of the new token that do not exist, or that its person may not see. */
  readonly unknown?: readonly string[];
  readonly done?: string | undefined;
  readonly mistake?: Mistake | undefined;
}

async function showTokens(
  { store, world }: AccountPages['context'],
  { c, session, show }: PageRequest,
  shown: TokensShown,
): Promise<Response> {
  const messages = readMessages(c);
  const t = messages.tokens;
  const tokens = await listPersonalTokens(store, session.user.id);
  const list = tokens.map((token) =>
    renderToken(messages, token, { csrfToken: session.csrfToken, nowMs: world.nowMs() }),
  );
  const content = html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${renderDone(shown.done)}${renderMistake(messages, shown.mistake, { name: t.name, days: t.expiry, scopes: t.scopes, repositories: t.repositories })}${shown.secret ? html`<div class="notice" role="status"><strong>${t.once}</strong><code class="secret" id="new-token" data-copy>${shown.secret}</code></div>` : ''}
${shown.unknown?.length ? html`<div class="notice warn" role="alert">${t.unknownRepositories(shown.unknown)}</div>` : ''}
${tokens.length === 0 ? html`<p class="empty">${t.none}</p>` : html`<ul class="list">${list}</ul>`}
${renderTokenForm(messages, shown, session)}`;
  return show({ title: t.title, here: '/account/tokens', content }, { status: shown.mistake ? 422 : 200 });
}

function renderToken(
  messages: Messages,
  token: PersonalToken,
  { csrfToken, nowMs }: { readonly csrfToken: string; readonly nowMs: number },
): Html {
  const t = messages.tokens;
  const end = token.expiresAtMs;
  const isOver = end !== undefined && end <= nowMs;
  const ends = end === undefined ? t.endless : isOver ? t.ended : t.ends(messages.format.date(end));
  const used = token.lastUsedAtMs === undefined ? t.neverUsed : t.used(messages.format.date(token.lastUsedAtMs));
  return html`<li class="item"><div class="tight">
<p><strong>${token.name}</strong> <code class="soft">…${token.hint}</code> ${isOver ? html`<span class="tag bad">${t.ended}</span>` : ''}</p>
<p class="tags">${token.scopes.map((scope) => html`<span class="tag">${scope}</span>`)}</p>
${token.repositories === undefined ? '' : html`<p class="small soft">${t.limitedTo(token.repositories.join(', '))}</p>`}
<p class="small soft">${t.made(messages.format.date(token.createdAtMs))} · ${used} · ${ends}</p></div>
${renderQuestion(messages, { label: t.delete, subject: token.name, question: t.askDelete(token.name), action: '/account/tokens/delete', csrfToken, fields: { token_id: token.tokenId } })}</li>`;
}

function renderTokenForm(
  messages: Messages,
  { values, mistake }: TokensShown,
  { user, csrfToken }: PageRequest['session'],
): Html {
  const t = messages.tokens;
  const lifetimes = [
    ...LIFETIMES_DAYS.map((days) => ({ value: String(days), label: t.days(days) })),
    { value: 'none', label: t.forever },
  ];
  const scopes = listGrantable(API_SCOPES, user).map((scope) =>
    renderScope(messages, scope, values.scopes.includes(scope)),
  );
  return html`<section class="card stack" aria-labelledby="new"><h2 id="new">${t.createTitle}</h2>
<form method="post" action="/account/tokens" class="stack">${renderCsrf(csrfToken)}
${renderField({ name: 'name', label: t.name, hint: t.nameHint, value: values.name, autocomplete: 'off', mistake })}
${renderSelect({ name: 'days', label: t.expiry, choices: lifetimes, value: values.days, mistake })}
${renderGroup({ name: 'scopes', label: t.scopes, mistake }, scopes)}
${renderField({ name: 'repositories', label: t.repositories, hint: t.repositoriesHint, value: values.repositories, autocomplete: 'off', isOptional: true, mistake })}
<button>${t.submit}</button>
</form></section>`;
}

function renderScope(messages: Messages, scope: Scope, isChosen: boolean): Html {
  const { title, about, power } = describeScope(messages, scope);
  const mark = power === 'danger' ? html` <span class="tag bad">${messages.consent.powers.danger}</span>` : '';
  return renderCheck({
    name: 'scope',
    value: scope,
    isChosen,
    label: html`<code>${scope}</code> ${title}${mark}`,
    hint: about,
  });
}
