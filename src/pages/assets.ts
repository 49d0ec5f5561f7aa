/** Loads style sheets, scripts and icons of pages, and names them by digest for caching. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { HttpEnv } from '../http/context.ts';

export interface Asset {
  readonly path: string;
  readonly content: string;
  readonly type: string;
}

const TYPES: readonly (readonly [ending: string, type: string])[] = [
  ['.css', 'text/css; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
];

export const styleSheet = loadAsset(new URL('styles.css', import.meta.url));
/** The script that every page loads; pages also work without it. */
export const pageScript = loadAsset(new URL('page.js', import.meta.url));
export const icon = loadAsset(new URL('icon.svg', import.meta.url));

export function loadAsset(file: URL): Asset {
  const name = file.pathname.split('/').at(-1) ?? '';
  const source = readFileSync(file, 'utf8');
  const content = name.endsWith('.css') ? shortenCss(source) : source;
  const digest = createHash('sha256').update(content).digest('base64url').slice(0, 12);
  const type = TYPES.find(([ending]) => name.endsWith(ending))?.[1] ?? 'application/octet-stream';
  return { path: `/assets/${digest}-${name}`, content, type };
}

/** Removes comments and needless white space. White space around a colon stays, since it can separate two selectors. */
function shortenCss(source: string): string {
  return source
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1');
}

export function addAssetRoutes(routes: OpenAPIHono<HttpEnv>, assets: readonly Asset[]): void {
  for (const { path, content, type } of assets) {
    // All responses share these bytes.
    const bytes = new TextEncoder().encode(content);
    routes.get(path, (c) =>
      c.body(bytes, 200, {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=31536000, immutable',
        'X-Content-Type-Options': 'nosniff',
      }),
    );
  }
}
