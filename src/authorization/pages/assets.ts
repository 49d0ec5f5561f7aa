/** The few files that pages load: named by their digest, so that a browser keeps them for good. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';

const TYPES = {
  'styles.css': 'text/css; charset=utf-8',
  'passkey.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

export type AssetName = keyof typeof TYPES;

interface Asset {
  readonly path: string;
  readonly content: string;
  readonly type: string;
}

const assets = new Map<AssetName, Asset>((Object.keys(TYPES) as AssetName[]).map((name) => [name, readAsset(name)]));

function readAsset(name: AssetName): Asset {
  const source = readFileSync(new URL(name, import.meta.url), 'utf8');
  const content = name.endsWith('.css') ? source.replace(/\s+/g, ' ') : source;
  const digest = createHash('sha256').update(content).digest('base64url').slice(0, 12);
  return { path: `/assets/${digest}-${name}`, content, type: TYPES[name] };
}

export function assetPath(name: AssetName): string {
  return assets.get(name)!.path;
}

export function addAssetRoutes(routes: OpenAPIHono<HttpEnv>): void {
  const byPath = new Map([...assets.values()].map((asset) => [asset.path, asset]));
  routes.get('/assets/:name', (c) => {
    const asset = byPath.get(c.req.path);
    if (asset === undefined) throw new Failure('not_found', `No asset ${c.req.path}`);
    return c.body(asset.content, 200, {
      'Content-Type': asset.type,
      'Cache-Control': 'public, max-age=31536000, immutable',
      'X-Content-Type-Options': 'nosniff',
    });
  });
}
