/** Sends rows as a CSV or JSON file page by page, without holding all of them in memory. */
import type { Context } from 'hono';
import type { HttpEnv } from '../http/context.ts';

export const EXPORT_FORMATS = ['csv', 'jsonl'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export type ExportRow = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface RowExport {
  /** The name of the file, without its extension. */
  readonly name: string;
  readonly format: ExportFormat;
  readonly columns: readonly string[];
  /** The pages of rows; each is read when the browser has taken the one before. */
  readonly pages: AsyncIterable<readonly ExportRow[]>;
}

const TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  jsonl: 'application/jsonl; charset=utf-8',
};

/** Rejects when the first page of rows cannot be read, so that the browser gets an error page: a file that has begun can only break off. */
export async function respondExport(c: Context<HttpEnv>, rowExport: RowExport): Promise<Response> {
  const { name, format } = rowExport;
  const pages = rowExport.pages[Symbol.asyncIterator]();
  const first = await pages.next();
  c.header('Content-Type', TYPES[format]);
  c.header('Content-Disposition', `attachment; filename="${name}.${format}"`);
  c.header('Cache-Control', 'no-store');
  c.header('X-Content-Type-Options', 'nosniff');
  return c.body(toStream(formatPages(rowExport, first, pages)));
}

export function readExportFormat(text: string | undefined): ExportFormat {
  return EXPORT_FORMATS.find((format) => format === text) ?? 'csv';
}

async function* formatPages(
  { format, columns }: RowExport,
  first: IteratorResult<readonly ExportRow[]>,
  pages: AsyncIterator<readonly ExportRow[]>,
): AsyncGenerator<string> {
  const formatRow = (row: ExportRow) =>
    format === 'csv' ? formatLine(columns.map((column) => row[column])) : `${JSON.stringify(row)}\n`;
  if (format === 'csv') yield formatLine(columns);
  for (let page = first; page.done !== true; page = await pages.next()) yield page.value.map(formatRow).join('');
}

function toStream(parts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await parts.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
}

/** Writes a CSV field by RFC 4180. */
function formatLine(cells: readonly (string | number | boolean | null | undefined)[]): string {
  return `${cells.map(formatCell).join(',')}\r\n`;
}

function formatCell(cell: string | number | boolean | null | undefined): string {
  if (typeof cell !== 'string') return cell === null || cell === undefined ? '' : String(cell);
  // Spreadsheets read these characters as the start of a formula, and names are untrusted input.
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
