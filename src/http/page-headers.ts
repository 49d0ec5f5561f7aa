/** Writes the paging headers of a list: totals, and links to the first, previous, next and last page. */
import type { Context } from 'hono';

export interface Page {
  readonly number: number;
  readonly size: number;
  readonly offset: number;
}

/** Returns the two paging headers of the API v5, and RFC 8288 links with the caller's other parameters but without its token. */
export function setPageHeaders(c: Context, page: Page, total: number, baseUrl: string): void {
  const last = Math.max(1, Math.ceil(total / page.size));
  c.header('total_count', String(total));
  c.header('total_page', String(Math.ceil(total / page.size)));
  const targets: [relation: string, number: number | undefined][] = [
    ['first', 1],
    ['prev', page.number > 1 ? Math.min(page.number - 1, last) : undefined],
    ['next', page.number < last ? page.number + 1 : undefined],
    ['last', last],
  ];
  const links = targets.flatMap(([relation, number]) =>
    number === undefined ? [] : [`<${pageUrl(c, number, page.size, baseUrl)}>; rel="${relation}"`],
  );
  c.header('Link', links.join(', '));
}

function pageUrl(c: Context, number: number, size: number, baseUrl: string): string {
  return addressWith(c, baseUrl, (query) => {
    query.set('page', String(number));
    query.set('per_page', String(size));
  });
}

/**
 * Returns the URL of this request at `baseUrl` with other parameters, and without the token of the caller. The path stays encoded
 * as the caller sent it: a header allows no other characters.
 */
export function addressWith(c: Context, baseUrl: string, change: (query: URLSearchParams) => void): string {
  const query = new URLSearchParams(c.req.query());
  query.delete('access_token');
  change(query);
  return `${baseUrl}${new URL(c.req.url).pathname}?${query.toString()}`;
}
