import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApp } from '../src/app.ts';
import { parseConfig } from '../src/config/config.ts';

/** Reads the OpenAPI document that the running program serves. */
export async function readOpenApi(): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-generate-'));
  const config = parseConfig({
    BASE_URL: 'http://localhost:8080',
    AUTH_URL: 'http://localhost:8080',
    HTTP_PORT: '0',
    GRPC_PORT: '0',
    LOG_LEVEL: 'silent',
    TRIVET_DATA_DIR: dataDir,
  });
  try {
    await using app = await startApp(config);
    const response = await fetch(`${app.httpUrl}/openapi.json`);
    const text = await response.text();
    if (!response.ok) throw new Error(`The program cannot describe itself: ${text}`);
    return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
