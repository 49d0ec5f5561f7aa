/** `aggregate` is the long name of the empty pod type. */
export function normalizePodType(podType: string): string {
  return podType === 'aggregate' ? '' : podType;
}
