/** Serves the delivery log of a webhook in pages of 25, and sends deliveries again (redelivery). */
import type { Mistake } from '../../pages/elements.ts';
import { nameByLabel } from '../../pages/field-labels.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import {
  type PageRequest,
  readMistake,
  type SignedInPages,
  type Submission,
  showView,
  tryForm,
} from '../frame/console.ts';
import { deliveryTexts } from '../texts/delivery-texts.ts';
import { type ConsoleTexts, readTexts } from '../texts/texts.ts';
import { type LogFilter, renderDelivery, renderLog } from './delivery-pages.ts';
import { searchDeliveries } from './delivery-search.ts';
import { pathOfHook } from './hook-pages.ts';
import { HOOK, type Reached, reachHook, toUtcTime } from './hook-routes.ts';
import type { DeliveryPage, HookAdmin } from './hook-views.ts';
import { WEBHOOKS } from './repository-routes.ts';

const DELIVERY = `${HOOK}/deliveries/:delivery{[0-9]{1,16}}`;
const PAGE_SIZE = 25;
const STATES = Object.keys(deliveryTexts.states);

export function addDeliveryRoutes({ livePage, form }: SignedInPages, admin: HookAdmin): void {
  livePage(`${HOOK}/deliveries`, (request) => showLog(admin, request));
  livePage(DELIVERY, async (request) => showDelivery(request, await reachHook(admin, request)));
  form(`${DELIVERY}/again`, (submission) => sendAgain(admin, submission));
}

async function showLog(admin: HookAdmin, request: PageRequest): Promise<Response> {
  const texts = readTexts(request.c);
  const { repository, hook } = await reachHook(admin, request);
  const view = await hook.describe();
  const filter = readFilter(texts, request);
  const before = request.c.req.query('before') ?? '';
  const { deliveries, nextBefore, mistake } = await readPage(texts, hook, { ...filter, before });
  const content = renderLog(texts, {
    repository,
    hook: view,
    filter,
    states: STATES,
    events: admin.eventKinds,
    deliveries,
    isContinued: before !== '',
    pageSize: PAGE_SIZE,
    nextBefore,
    mistake,
  });
  return showView(request, { title: texts.deliveries.title, here: WEBHOOKS, content, mistake });
}

async function sendAgain(admin: HookAdmin, submission: Submission): Promise<Response> {
  const texts = readTexts(submission.c);
  const reached = await reachHook(admin, submission);
  const id = submission.c.req.param('delivery') ?? '';
  return await tryForm(
    texts,
    async () => {
      await reached.hook.sendAgain(id);
      const { pathname } = new URL(submission.c.req.url);
      return submission.c.redirect(`${pathname.replace(/\/again$/, '')}?done=again`, 303);
    },
    (mistake) => showDelivery(submission, reached, { message: mistake.message }),
  );
}

function readFilter({ format }: ConsoleTexts, { c }: PageRequest): LogFilter {
  const read = (name: string) => c.req.query(name) ?? '';
  const [since, until] = [read('since'), read('until')];
  return {
    q: read('q').trim(),
    status: read('status').trim(),
    state: read('state'),
    event: read('event'),
    since,
    until,
    zone: since + until === '' ? '' : format.timeZone,
  };
}

/** An invalid filter is explained on the page, above an empty list. */
async function readPage(
  texts: ConsoleTexts,
  hook: Reached['hook'],
  { q, status, state, event, since, until, before }: LogFilter & { readonly before: string },
): Promise<DeliveryPage & { readonly mistake?: Mistake }> {
  const times = { since: toUtcTime(texts, since), until: toUtcTime(texts, until) };
  try {
    return await searchDeliveries(hook, q, {
      status_code: status,
      state,
      event,
      ...times,
      before,
      per_page: PAGE_SIZE,
    });
  } catch (error) {
    return { deliveries: [], nextBefore: undefined, mistake: nameField(texts, readMistake(texts, error)) };
  }
}

/** The API has other names for two fields. */
function nameField({ deliveries: t }: ConsoleTexts, { message, field = '' }: Mistake): Mistake {
  const names: Readonly<Record<string, string>> = { status_code: 'status', subject: 'q', id: 'q' };
  return {
    message: nameByLabel(message, { status_code: t.status, subject: t.search, id: t.search }),
    field: names[field] ?? field,
  };
}

async function showDelivery(request: PageRequest, { repository, hook }: Reached, mistake?: Mistake): Promise<Response> {
  const texts = readTexts(request.c);
  const t = texts.deliveries;
  const [view, delivery] = await Promise.all([
    hook.describe(),
    hook.readDelivery(request.c.req.param('delivery') ?? ''),
  ]);
  const done = findDone(request.c, { again: t.againDone });
  const { csrfToken } = request.session;
  const content = renderDelivery(texts, {
    repository,
    hook: view,
    delivery,
    filter: readFilter(texts, request),
    isTest: request.c.req.query('done') === 'tested',
    done,
    mistake,
    csrfToken,
  });
  const at = `${pathOfHook(repository, view.id)}/deliveries/${delivery.id}`;
  return showView(request, { title: t.number(delivery.id), here: WEBHOOKS, at, content, mistake });
}
