/** A minimal browser for forms: keeps cookies, follows no redirects, and fills in the forms of pages. */

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  readonly location: string | null;
  /** `Set-Cookie` lines. */
  readonly cookies: readonly string[];
}

export interface FormClient {
  readonly jar: Map<string, string>;
  get(path: string): Promise<Answer>;
  head(path: string): Promise<Answer>;
  /** Posts exactly these fields. */
  post(path: string, fields: Fields, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Opens `page`, takes the hidden fields of its form that posts to `action`, adds `fields`, and sends it. */
  submit(page: string, action: string, fields: Fields): Promise<Answer>;
  /** Reads the page that the redirect of a refused form leads to. */
  readRefusal(answer: Answer | Promise<Answer>): Promise<Answer>;
  /** Does the same for a form that may be refused; returns any other answer unchanged. */
  readOutcome(answer: Answer | Promise<Answer>): Promise<Answer>;
}

export type Fields = Readonly<Record<string, string>>;

/** `always`: headers of every request. */
export function createFormClient(baseUrl: string, jar = new Map<string, string>(), always: Fields = {}): FormClient {
  const send = async (path: string, init: RequestInit): Promise<Answer> => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...always, ...(cookie === '' ? {} : { cookie }), ...(init.headers as Fields | undefined) };
    const response = await fetch(baseUrl + path, { ...init, headers, redirect: 'manual' });
    const cookies = response.headers.getSetCookie();
    for (const line of cookies) keep(jar, line);
    const { status } = response;
    const location = response.headers.get('location');
    return { status, headers: response.headers, body: await response.text(), location, cookies };
  };
  const post: FormClient['post'] = (path, fields, headers = {}) =>
    send(path, {
      method: 'POST',
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(baseUrl).origin, ...headers },
    });
  const get: FormClient['get'] = (path) => send(path, {});
  return {
    jar,
    get,
    head: (path) => send(path, { method: 'HEAD' }),
    post,
    async readRefusal(answer) {
      const given = await answer;
      if (!isRefusal(given))
        throw new Error(`The form was not refused behind a redirect: ${given.status} ${given.location}`);
      return get(given.location ?? '');
    },
    async readOutcome(answer) {
      const given = await answer;
      return isRefusal(given) ? get(given.location ?? '') : given;
    },
    submit: async (page, action, fields) => post(action, { ...readHidden((await get(page)).body, action), ...fields }),
  };
}

function isRefusal({ status, location }: Answer): boolean {
  return status === 303 && /[?&]refused=/.test(location ?? '');
}

function keep(jar: Map<string, string>, line: string): void {
  const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
  if (/max-age=0/i.test(line)) jar.delete(name);
  else jar.set(name, value);
}

/** The hidden fields of the form that posts to `action`. */
export function readHidden(body: string, action: string): Record<string, string> {
  const form = body.split('<form ').find((part) => part.includes(`action="${action}"`)) ?? '';
  const inputs = form.split('</form>')[0]?.matchAll(/<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?/g) ?? [];
  return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, unescapeHtml(value)]));
}

function unescapeHtml(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}
