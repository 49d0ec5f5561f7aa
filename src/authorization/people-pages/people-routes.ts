/** Serves the list of people for administrators: search, export, new accounts, invitations. */
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import type { Mistake } from '../../pages/elements.ts';
import { readExportFormat, respondExport } from '../../pages/export-rows.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import type { AccountPages, PageRequest, Submission } from '../account-pages/account-pages.ts';
import { checkAdmin } from '../account-pages/activity-routes.ts';
import { redirectWithSecret } from '../account-pages/shown-once.ts';
import { invitePerson } from '../administration/invite-people.ts';
import { createPerson } from '../administration/manage-people.ts';
import { type FoundPeople, PERSON_STATES, searchPeople, type UserState } from '../administration/people-store.ts';
import { toPerson } from '../administration/person.ts';
import { writeMail } from '../messages/mails.ts';
import { readMessages } from '../messages/messages.ts';
import { addAuditRoutes } from './audit-routes.ts';
import {
  formatFilter,
  type NewPersonValues,
  PEOPLE,
  PEOPLE_EXPORT,
  type PeopleFilter,
  pathOfPerson,
  renderPeople,
} from './people-view.ts';
import { addPersonRoutes, readSignedInActor } from './person-routes.ts';

const PAGE_SIZE = 50;
const EXPORT_PAGE_SIZE = 500;

export function addPeopleRoutes(pages: AccountPages): void {
  addList(pages);
  addCreation(pages);
  addTestMail(pages);
  addPersonRoutes(pages);
  addAuditRoutes(pages);
}

function addList({ context, page }: AccountPages): void {
  page(PEOPLE, async (request) => {
    checkAdmin(request);
    return showPeople(context, request, {});
  });

  page(PEOPLE_EXPORT, async (request) => {
    checkAdmin(request);
    const { c } = request;
    const pages = readAll(context.store, readFilter(c));
    return respondExport(c, {
      name: 'people',
      format: readExportFormat(c.req.query('format')),
      columns: COLUMNS,
      pages,
    });
  });
}

const COLUMNS = [
  'login',
  'name',
  'email',
  'isEmailVerified',
  'isAdmin',
  'createdAtMs',
  'disabledAtMs',
  'passwordChangedAtMs',
  'id',
] as const;

async function* readAll(store: AccountPages['context']['store'], filter: PeopleFilter) {
  for (let after: string | null = ''; after !== null; ) {
    const found: FoundPeople = await searchPeople(store, { ...filter, after, limit: EXPORT_PAGE_SIZE });
    yield found.people.map((user) => ({ ...toPerson(user) }));
    after = found.next;
  }
}

/** Repeats a search that ends before the page is full: otherwise an empty page in the middle would look like the last one. */
async function readPage(store: AccountPages['context']['store'], filter: PeopleFilter, after: string) {
  const people: UserState[] = [];
  let next: string | null = after;
  while (next !== null && people.length < PAGE_SIZE) {
    const found: FoundPeople = await searchPeople(store, { ...filter, after: next, limit: PAGE_SIZE - people.length });
    people.push(...found.people);
    next = found.next;
  }
  return { people, next };
}

function readFilter(c: Context<HttpEnv>): PeopleFilter {
  const state = PERSON_STATES.find((one) => one === c.req.query('state'));
  return { q: (c.req.query('q') ?? '').trim().slice(0, 100), state };
}

function addCreation({ context, form }: AccountPages): void {
  form(PEOPLE, async (submission) => {
    const messages = readMessages(submission.c);
    checkAdmin(submission);
    const values = readValues(submission);
    try {
      return await createByForm(context, submission, values);
    } catch (error) {
      return showPeople(context, submission, { values, mistake: toMistake(messages, error) });
    }
  });
}

function readValues({ form }: Submission): NewPersonValues {
  const way = readField(form, 'way');
  return {
    login: readField(form, 'login').trim(),
    name: readField(form, 'name').trim(),
    email: readField(form, 'email').trim(),
    way: way === 'mail' || way === 'show' ? way : 'password',
  };
}

async function createByForm(
  context: AccountPages['context'],
  submission: Submission,
  { way, ...values }: NewPersonValues,
): Promise<Response> {
  const actor = readSignedInActor(submission);
  const person = { ...values, email: values.email || null };
  if (way === 'password') {
    await createPerson(context, actor, { ...person, isAdmin: false, password: readField(submission.form, 'password') });
    return submission.c.redirect(`${PEOPLE}?done=created`, 303);
  }
  const { language } = readMessages(submission.c);
  const link = await invitePerson(context, actor, { ...person, sendsMail: way === 'mail', language });
  if (way === 'mail') return submission.c.redirect(`${PEOPLE}?done=invited`, 303);
  return redirectWithSecret(context, submission, {
    path: pathOfPerson(values.login),
    texts: [link.url],
    done: 'created',
  });
}

/** Sends a test mail to the address in the administrator's profile, verified or not: the form takes no other address. */
function addTestMail({ context, form }: AccountPages): void {
  form(`${PEOPLE}/test-mail`, async (submission) => {
    const messages = readMessages(submission.c);
    checkAdmin(submission);
    const { login, name, email } = submission.session.user;
    if (context.mailer === undefined) return submission.c.redirect(PEOPLE, 303);
    if (email === null)
      return showPeople(context, submission, { mistake: { message: messages.users.testMailNeedsAddress } });
    const facts = { name, login, url: context.baseUrl, service: context.baseUrl };
    const mail = writeMail(messages.language, 'test', facts);
    await context.store.writeAll([context.mailer.queueStatement({ ...mail, to: email })]);
    return submission.c.redirect(`${PEOPLE}?done=test_mail`, 303);
  });
}

interface Shown {
  readonly values?: NewPersonValues | undefined;
  readonly mistake?: Mistake | undefined;
}

async function showPeople(
  context: AccountPages['context'],
  { c, session, show }: PageRequest,
  { values, mistake }: Shown,
): Promise<Response> {
  const messages = readMessages(c);
  const t = messages.users;
  const filter = readFilter(c);
  const canMail = context.mailer !== undefined;
  const { people, next } = await readPage(context.store, filter, c.req.query('after') ?? '');
  const content = renderPeople(messages, {
    people,
    filter,
    next: next === null ? undefined : PEOPLE + formatFilter(filter, { after: next }),
    csrfToken: session.csrfToken,
    values: values ?? { login: '', name: '', email: '', way: canMail ? 'mail' : 'show' },
    mistake,
    done: findDone(c, { created: t.created, invited: t.invitedByMail, test_mail: t.testMailSent }),
    canMail,
  });
  return show({ title: t.title, here: PEOPLE, at: PEOPLE, content }, { status: mistake ? 422 : 200 });
}
