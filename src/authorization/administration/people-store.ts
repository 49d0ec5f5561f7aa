/**
 * Searches people in the order of their logins. In both databases `LOWER` folds only the letters A to Z and leaves "Ö" as it is.
 * So the LIKE pattern has a wildcard for any other letter of the search text, and the rows are compared again here.
 */
import { type Store, statement } from '../../database/store.ts';
import { loginKey } from '../accounts/login.ts';
import { toUser, USER_COLUMNS, type User, type UserRow } from '../accounts/user-store.ts';

export const PERSON_STATES = ['active', 'disabled', 'admin', 'invited', 'one_step'] as const;
export type PersonState = (typeof PERSON_STATES)[number];

const HAS_PASSKEY = 'EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = users.id)';
const HAS_UPSTREAM = 'EXISTS (SELECT 1 FROM upstream_accounts a WHERE a.user_id = users.id)';
const HAS_TOTP = 'EXISTS (SELECT 1 FROM totp_secrets t WHERE t.user_id = users.id AND t.confirmed_at_ms IS NOT NULL)';

const IS_INVITED = `password_changed_at_ms IS NULL AND NOT ${HAS_PASSKEY} AND NOT ${HAS_UPSTREAM}`;
const PERSON_COLUMNS = `${USER_COLUMNS}, CASE WHEN ${IS_INVITED} THEN 1 ELSE 0 END AS is_invited`;

interface PersonRow extends UserRow {
  readonly is_invited: number;
}

/** A user as administrators see one. */
export interface UserState extends User {
  /** Has no way to sign in yet: no password, passkey or linked account. */
  readonly isInvited: boolean;
}

const personSql = statement<PersonRow>('find-person', `SELECT ${PERSON_COLUMNS} FROM users WHERE login_key = $1`);

// No index serves a search within names, so a page reads rows until it is full. Only administrators search, and rarely.
const searchSql = statement<PersonRow>(
  'search-people',
  `SELECT ${PERSON_COLUMNS} FROM users
   WHERE login_key > $1
     AND (login_key LIKE $2 ESCAPE '!' OR LOWER(name) LIKE $2 ESCAPE '!' OR LOWER(COALESCE(email, '')) LIKE $2 ESCAPE '!')
     AND ($3 = ''
       OR ($3 = 'active' AND disabled_at_ms IS NULL)
       OR ($3 = 'disabled' AND disabled_at_ms IS NOT NULL)
       OR ($3 = 'admin' AND is_admin = 1)
       OR ($3 = 'invited' AND ${IS_INVITED})
       OR ($3 = 'one_step' AND password_changed_at_ms IS NOT NULL AND NOT ${HAS_PASSKEY} AND NOT ${HAS_TOTP}))
   ORDER BY login_key LIMIT $4`,
);

export interface PeopleSearch {
  /** Text that the login, the name or the email address contains. */
  readonly q?: string | undefined;
  readonly state?: PersonState | undefined;
  /** The last login of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface FoundPeople {
  /** At most `limit`, in the order of their logins. */
  readonly people: UserState[];
  /** The `after` of the next page; null at the end. */
  readonly next: string | null;
}

/** The rows that one statement reads if they are compared here. */
const BATCH_SIZE = 500;
/** After this many rows, a search returns what it has found so far. */
const MAX_READ = 2000;
/** A letter outside A to Z that has two cases. */
const OTHER_LETTER = /[^\P{Changes_When_Casemapped}A-Za-z]/u;

export async function searchPeople(
  store: Store,
  { q = '', state, after = '', limit }: PeopleSearch,
): Promise<FoundPeople> {
  const text = q.trim();
  const pattern = `%${Array.from(text, toPattern).join('')}%`;
  const batchSize = OTHER_LETTER.test(text) ? Math.max(limit + 1, BATCH_SIZE) : limit + 1;
  const people: UserState[] = [];
  let last = after;
  for (let read = 0; read < MAX_READ; read += batchSize) {
    const rows = await store.read(searchSql, [loginKey(last), pattern, state ?? '', batchSize]);
    people.push(...rows.filter((row) => hasText(row, text)).map(toUserState));
    if (people.length > limit) return { people: people.slice(0, limit), next: people[limit - 1]?.login ?? null };
    if (rows.length < batchSize) return { people, next: null };
    last = rows.at(-1)?.login ?? '';
  }
  return { people, next: last };
}

/** Escapes the character for a LIKE pattern, or returns `_`, which matches any character. */
function toPattern(character: string): string {
  if (OTHER_LETTER.test(character)) return '_';
  return character.toLowerCase().replace(/[!%_]/, '!$&');
}

function hasText({ login, name, email }: PersonRow, text: string): boolean {
  const searched = foldCase(text);
  return [login, name, email ?? ''].some((field) => foldCase(field).includes(searched));
}

/** Also folds the final form of the small Greek sigma. */
function foldCase(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}

export async function findUserState(store: Store, login: string): Promise<UserState | undefined> {
  return (await store.read(personSql, [loginKey(login)])).map(toUserState)[0];
}

function toUserState(row: PersonRow): UserState {
  return { ...toUser(row), isInvited: row.is_invited === 1 };
}
