/** Searches the delivery log by a text that can mean several things: a delivery, a branch, a tag or an issue. */
import type { DeliveryPage, OpenHook, Values } from './hook-views.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Delivery numbers have 10 to 16 digits; the numbers of issues are smaller. */
const DELIVERY_NUMBER = /^\d{10,16}$/;

/** Returns the newest deliveries that match the other parameters and one of the meanings of the text. */
export async function searchDeliveries(
  hook: Pick<OpenHook, 'listDeliveries'>,
  text: string,
  { per_page: size, ...values }: Values & { readonly per_page: number },
): Promise<DeliveryPage> {
  const list = (meaning: Values) => hook.listDeliveries({ ...meaning, ...values, per_page: size });
  const isFirstPage = !values.before;
  const [numbered, ...pages] = await Promise.all([
    isFirstPage && isDeliveryNumber(text) ? list({ id: text }) : undefined,
    ...listMeanings(text).map(list),
  ]);
  return addNumbered(mergePages(pages, size), numbered?.deliveries ?? []);
}

function isDeliveryNumber(text: string): boolean {
  return DELIVERY_NUMBER.test(text) && Number.isSafeInteger(Number(text));
}

/** What the text can mean, other than a delivery number. A branch or a tag may consist of digits, such as a release or a date. */
function listMeanings(text: string): readonly Values[] {
  if (UUID.test(text)) return [{ uuid: text }];
  const asSubject = { subject: text };
  const isIssue = /^\d+$/.test(text) && !DELIVERY_NUMBER.test(text);
  return isIssue ? [{ subject: `#${text}` }, asSubject] : [asSubject];
}

/** The delivery of that number is on the first page, however old it is: the other searches may stop at newer ones. */
function addNumbered({ deliveries, nextBefore }: DeliveryPage, numbered: DeliveryPage['deliveries']): DeliveryPage {
  const others = deliveries.filter(({ id }) => !numbered.some((one) => one.id === id));
  return { deliveries: [...others, ...numbered].toSorted((a, b) => b.id - a.id), nextBefore };
}

/** Each page has all matches down to its `nextBefore`, so the merged page is complete down to the highest `nextBefore`. */
function mergePages(pages: readonly DeliveryPage[], size: number): DeliveryPage {
  const ends = pages.flatMap(({ nextBefore }) => nextBefore ?? []);
  const endId = ends.length === 0 ? undefined : Math.max(...ends);
  const byId = new Map(pages.flatMap(({ deliveries }) => deliveries.map((delivery) => [delivery.id, delivery])));
  const found = [...byId.values()].filter(({ id }) => id >= (endId ?? 0)).toSorted((a, b) => b.id - a.id);
  const shown = found.slice(0, size);
  return { deliveries: shown, nextBefore: found.length > size ? shown.at(-1)?.id : endId };
}
