/** Finds the labels of a form's fields by their names in the API. */
export type Labels = Readonly<Record<string, string>>;

/** A refusal with the label of its field: the API says `url must not be blank`, the page “Address” must not be blank. */
export function nameByLabel(message: string, labels: Labels): string {
  const [, used = '', reason = ''] = /^Cannot use this (\w+): it (.*)$/s.exec(message) ?? [];
  if (Object.hasOwn(labels, used)) return `“${labels[used]}” ${reason}`;
  const [, action = '', name = '', rest = ''] = /^(Cannot [^:"]*: )?([\w.]+) (.*)$/s.exec(message) ?? [];
  if (!Object.hasOwn(labels, name)) return nameInside(message, labels);
  // Chinese has no space beside its marks.
  const space = /^\p{Script=Han}/u.test(rest) ? '' : ' ';
  return `${action}“${labels[name]}”${space}${nameInside(rest, labels)}`;
}

/** Names such as `ttft_ms`, which are no words, wherever they stand, but in what was typed. */
function nameInside(message: string, labels: Labels): string {
  const isChinese = /\p{Script=Han}/u.test(message);
  return message.replace(/"[^"]*"|“[^”]*”| ?\b[a-z]+(?:_[a-z]+)+\b ?/g, (found) => {
    const name = found.trim();
    if (!Object.hasOwn(labels, name)) return found;
    const label = `“${labels[name]}”`;
    return isChinese ? label : found.replace(name, label);
  });
}
