/** Cuts the lists under `/api/v5/user` into pages. */
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { type Page, setPageHeaders } from '../../http/page-headers.ts';

const wholeNumber = (max: number, preset: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from 1 to ${max}`)
    .transform(Number)
    .refine((value) => value >= 1 && value <= max, `must be a whole number from 1 to ${max}`)
    .default(preset)
    .openapi({ type: 'integer', minimum: 1, maximum: max, default: preset });

export const listPageSchema = z.object({ page: wholeNumber(1_000_000, 1), per_page: wholeNumber(100, 20) });

/** Returns the items of one page, and sets the headers with the links to the other pages. */
export function takePage<T>(
  c: Context,
  all: readonly T[],
  { query, baseUrl }: { readonly query: z.output<typeof listPageSchema>; readonly baseUrl: string },
): T[] {
  const { page: number, per_page: size } = query;
  const page: Page = { number, size, offset: (number - 1) * size };
  setPageHeaders(c, page, all.length, baseUrl);
  return all.slice(page.offset, page.offset + size);
}
