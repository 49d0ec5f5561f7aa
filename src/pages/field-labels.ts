/** Finds the labels of a form's fields by their names in the API. */
export type Labels = Readonly<Record<string, string>>;

/** Puts the label of a field in place of its name: `url must not be blank` of the API becomes “Address” must not be blank. */
export function nameByLabel(message: string, labels: Labels): string {
  const [, used = '', reason = ''] = /^Cannot use this (\w+): it (.*)$/s.exec(message) ?? [];
  if (Object.hasOwn(labels, used)) return `“${labels[used]}” ${reason}`;
  const [, action = '', name = '', rest = ''] = /^(Cannot [^:"]*: )?([\w.]+) (.*)$/s.exec(message) ?? [];
  if (!Object.hasOwn(labels, name)) return nameInside(message, labels);
  // Chinese has no space beside quotation marks.
  const space = /^\p{Script=Han}/u.test(rest) ? '' : ' ';
  return `${action}“${labels[name]}”${space}${nameInside(rest, labels)}`;
}

/** Replaces names with an underscore, such as `ttft_ms`, anywhere outside of quotes: quotes hold what was typed. */
function nameInside(message: string, labels: Labels): string {
  const isChinese = /\p{Script=Han}/u.test(message);
  return message.replace(/"[^"]*"|“[^”]*”| ?\b[a-z]+(?:_[a-z]+)+\b ?/g, (found) => {
    const name = found.trim();
    if (!Object.hasOwn(labels, name)) return found;
    const label = `“${labels[name]}”`;
    return isChinese ? label : found.replace(name, label);
  });
}
